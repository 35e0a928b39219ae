// This process's piece. Made at the first profiled call; where it cannot be made, profiling is off and one process of the job says so.
#pragma once
#include <atomic>
#include <string>
#include <string_view>

#include "profile/clock.hpp"
#include "profile/piece_layout.hpp"

namespace holdfast::profile {

enum class State : int { unknown, off, on };
extern std::atomic<State> state;
bool decide();  // from the environment: HOLDFAST_PROFILE_PIECES (from `holdfast run`) or HOLDFAST_PROFILE

// Whether this job is profiled. One load once that is known.
inline bool on() {
  const State now = state.load(std::memory_order_relaxed);
  return now == State::unknown ? decide() : now == State::on;
}

// The record of a file; null where profiling is off. `path` is absolute. Lock-free; allocates nothing; makes system calls only when the
// file is new to this process. A forked child counts in its parent's piece.
Record* record_for(Interface interface, std::string_view path);
// Null also where the file is new to this process.
Record* known_record(Interface interface, std::string_view path);
bool any_record();

// What is known of the process, when it is known.
void set_rank(int rank, int ranks);
// As MPI_Get_library_version says it; after set_rank().
void set_mpi(std::string_view version);
// The process goes in order, or a call long enough to look at the wall clock has been made.
void process_ends();
void process_goes_on();  // after all: an exec has failed
void read_both_clocks();

// For tests: forgets everything; the next call decides anew.
void forget_piece();

namespace live {  // of the piece, once a record exists
extern PieceHeader* header;
extern TimeStep* times;
extern Record* records;
extern Traced* trace;  // null: not asked for
extern uint64_t start_ticks;
extern uint64_t ns_per_tick_shifted;  // ns = ticks * this >> 32
}  // namespace live

}  // namespace holdfast::profile
