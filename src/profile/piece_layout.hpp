// A piece: what one process has counted, as its bytes lie in the job's directory of pieces and in the process's memory. Page 0 is the
// header, then come keys, the time line, records and perhaps a ring of single operations. Host byte order, read on machines of the
// same kind by the version that wrote it (`version`). Pieces live as long as a job; what is kept is the log.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/meter.hpp"
#include "profile/counters.hpp"
#include "profile/mpi_calls.hpp"

namespace holdfast::profile {

inline constexpr char piece_magic[8] = {'H', 'F', 'P', 'I', 'E', 'C', 'E', '1'};
inline constexpr uint32_t piece_version = 4;
inline constexpr char piece_suffix[] = ".piece";

inline constexpr uint32_t record_slots = 1024;  // files of one process; what comes later is counted together, by interface
inline constexpr uint32_t most_records = record_slots * 3 / 4;
inline constexpr uint32_t trace_slots = 1 << 15;
inline constexpr size_t common_values = 4;

using Value = std::atomic<uint64_t>;

// A list of names as a record and the log have it: "window, individual". f(name) for each.
inline constexpr std::string_view name_separator = ", ";
template <class F>
void for_each_name(std::string_view list, F&& f) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(name_separator), list.size());
    f(list.substr(0, end));
    list.remove_prefix(std::min(end + name_separator.size(), list.size()));
  }
}
inline bool names_one(std::string_view list, std::string_view name) {
  bool found = false;
  for_each_name(list, [&](std::string_view one) { found = found || one == name; });
  return found;
}

// The time line has steps of 2^24 ns (17 ms) at first, and steps of twice the length from each doubling of the time on. A process that runs for a
// year needs 32 doublings. Nothing is ever moved, so no two threads can disagree about where a byte belongs.
inline constexpr uint32_t time_shift = 24, first_steps = 128, steps_per_level = 64, time_levels = 26;
inline constexpr uint32_t time_steps = first_steps + steps_per_level * (time_levels - 1);

inline uint32_t time_step(uint64_t ns) {
  const uint64_t unit = ns >> time_shift;
  if (unit < first_steps) return uint32_t(unit);
  const uint32_t level = 63 - uint32_t(__builtin_clzll(unit)) - 6;  // 128..255 is level 1
  if (level >= time_levels) return time_steps - 1;
  return first_steps + (level - 1) * steps_per_level + uint32_t((unit >> level) - steps_per_level);
}
// In ns: where step `step` begins, and how long it is.
struct Span {
  uint64_t begin, length;
};
inline Span span_of_step(uint32_t step) {
  if (step < first_steps) return {uint64_t(step) << time_shift, 1ull << time_shift};
  const uint32_t level = (step - first_steps) / steps_per_level + 1;
  const uint64_t unit = uint64_t((step - first_steps) % steps_per_level + steps_per_level) << level;
  return {unit << time_shift, 1ull << (time_shift + level)};
}

struct TimeStep {
  Value read{0}, written{0};  // bytes of calls that ended in it
};

struct PieceHeader {
  char magic[8];
  uint32_t version, header_bytes, record_bytes, slots, steps, counters, trace, pid;
  uint64_t start_realtime_ns, start_ticks, start_ns;
  Value last_ticks, last_ns;  // the clock read together with CLOCK_MONOTONIC, some time later
  std::atomic<int32_t> rank, ranks;
  std::atomic<uint32_t> ended;  // the process went in order
  std::atomic<uint32_t> used;   // records
  Value traced;                 // operations so far
  double ns_per_tick;           // a first measure, for the time line
  char node[256];
  char program[1024];
  char job[64];               // the job's id where a batch system gives one
  char mpi[64];               // "MPICH 4.0.2"; empty: MPI has not begun
  uint32_t counts_mpi_calls;  // --profile-mpi
  CountedMpiCalls mpi_calls;
};

// A value that occurs often. The most frequent few are kept. The rarest gives way to a new one and hands on its count (so that a count is at most too
// large).
struct Common {
  Value value{0}, count{0};
};

enum class Lately : uint64_t { nothing, read, write };

struct alignas(4096) Record {
  std::atomic<uint32_t> ready;
  uint32_t interface;
  uint64_t key;
  Value alignment;  // bytes: the striping unit, or the file system's block
  char scheme[32];
  char pointer[48];  // what served the shared pointer: "window, individual"
  // Times in ticks. The first thread that reads or writes the file has an array of its own, which nobody else changes. It counts with plain
  // additions, where atomic ones would cost more than all the rest. What the record is worth is both arrays together, and the meter.
  std::array<Value, counter_count> own, others;
  std::atomic<uint32_t> owner;
  // The owner's bytes of the time line's step `step`, which are not in the time line yet.
  std::atomic<uint32_t> step;
  TimeStep in_step;
  Meter meter;
  std::array<Common, common_values> read_sizes, write_sizes, read_strides, write_strides;
  Value next_read, next_write;  // where a consecutive one would begin
  Value from_read, from_write;  // where the last one began
  Value lately;
  Value by_pointer;  // calls through the shared pointer until the file was last closed
  char path[1536];
};
inline constexpr size_t record_bytes = sizeof(Record);
static_assert(record_bytes == 4096 && sizeof(PieceHeader) <= 4096);

struct Traced {
  Value number;                             // 1 and up, in order of the process; 0: being written
  uint64_t begin, duration, offset, bytes;  // in ticks since the start
  uint32_t record;
  uint16_t counter;  // the call's kind
  uint16_t thread;
};

struct PieceOffsets {
  uint64_t keys, times, records, trace, end;
};
inline PieceOffsets piece_offsets(uint32_t traced) {
  PieceOffsets o{};
  o.keys = 4096;
  o.times = o.keys + record_slots * sizeof(Value);
  o.records = (o.times + time_steps * sizeof(TimeStep) + 4095) / 4096 * 4096;
  o.trace = o.records + uint64_t(record_slots) * record_bytes;
  o.end = o.trace + uint64_t(traced) * sizeof(Traced);
  return o;
}

}  // namespace holdfast::profile
