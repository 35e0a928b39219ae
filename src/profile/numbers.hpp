// Which descriptors lead to files that are counted. Read without a lock, by number. Changed where numbers are given and taken, which may be in signal
// handlers, in children of fork, and in several threads at once. So nothing here locks, allocates or is ever freed.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>

namespace holdfast::profile {

struct Record;

inline constexpr int most_numbers = 65536;  // descriptors beyond are not counted

// An open file description: what the duplicates of a descriptor share.
struct OpenedFile {
  std::atomic<Record*> record{nullptr};  // null: its calls belong to whoever opened it (an MPI library, a stream)
  std::atomic<int64_t> position{0};      // where the next access at the file's own position begins
  std::atomic<int64_t> end{-1};          // of a file opened to append, as far as known here; -1: not opened so
  std::atomic<uint32_t> numbers{0};      // descriptors that lead here; 0: free
  std::atomic<uint32_t> generation{0};   // of processes (forks) in which `position` was learned
};

namespace numbers {

extern std::array<std::atomic<OpenedFile*>, most_numbers> table;
extern OpenedFile not_counted;            // what is known to be no file that is counted
extern std::atomic<uint32_t> generation;  // raised in parent and child by each fork: they share positions from then on

inline bool in_range(int fd) { return unsigned(fd) < unsigned(most_numbers); }
// Null: nothing is known of it.
inline OpenedFile* find(int fd) { return in_range(fd) ? table[size_t(fd)].load(std::memory_order_acquire) : &not_counted; }

// `fd` is a newly opened file. Whatever it was before has ended. `end` -1: not opened to append.
OpenedFile* begin(int fd, Record* record, int64_t position, int64_t end);
void leave_out(int fd);        // it is no file that is counted
void share(int from, int to);  // dup and its kin: `to` leads where `from` does
void end(int fd);              // closed
void end_range(unsigned first, unsigned last);
inline void forked() { generation.fetch_add(1, std::memory_order_relaxed); }

}  // namespace numbers

}  // namespace holdfast::profile
