// What decisions are about.
#pragma once
#include <cstdint>

namespace holdfast::redundant {

enum class Subject : uint64_t {
  mpi_time = 1,
  time_of_day,
  seconds,
  processor,
  process_times,
  usage,
  random,
  names,
  host,
  system,
  processor_name,
  node,
  load,
  own_processor,
  clocks = 1 << 16
};

// About messages: of requests one, of each communicator one for each kind of question.
enum class Messages : uint64_t { requests, together, matches, probes, taken_probes, kinds };
inline bool is_about_matches(uint64_t subject) {
  constexpr uint64_t first = uint64_t(1) << 40, end = uint64_t(1) << 42;
  return subject >= first && subject < end && (subject - first) % uint64_t(Messages::kinds) == uint64_t(Messages::matches);
}
inline uint64_t message_subject(Messages kind, uint64_t communicator = 0) {
  return (uint64_t(1) << 40) + communicator * uint64_t(Messages::kinds) + uint64_t(kind);
}

// Each clock of clock_gettime(2) is one of its own.
inline uint64_t clock_subject(int which) { return uint64_t(Subject::clocks) + uint32_t(which); }

// Each thread of the program has its own answers of a clock. The first one, and all that nobody has counted, have number 0.
inline constexpr int clock_bits = 17, thread_bits = 20;
inline uint64_t clock_of_thread(uint64_t clock, uint32_t thread) {
  const bool is_one_of_its_own = thread != 0 && clock >> clock_bits == 0;
  return is_one_of_its_own ? uint64_t(1) << 62 | uint64_t(thread) << clock_bits | clock : clock;
}
inline bool is_of_thread(uint64_t subject) { return subject >> 62 == 1; }
inline uint32_t thread_of(uint64_t subject) { return is_of_thread(subject) ? uint32_t(subject >> clock_bits) & ((1u << thread_bits) - 1) : 0; }
inline uint64_t clock_of(uint64_t subject) { return is_of_thread(subject) ? subject & ((uint64_t(1) << clock_bits) - 1) : subject; }

inline bool is_clock(uint64_t subject) {
  constexpr uint64_t end = uint64_t(Subject::clocks) << 1;
  const uint64_t clock = clock_of(subject);
  return (clock >= uint64_t(Subject::mpi_time) && clock <= uint64_t(Subject::usage)) || (clock >= uint64_t(Subject::clocks) && clock < end);
}

// The `number`-th open of a file, whose name has this sum.
inline uint64_t open_subject(uint64_t name, uint64_t number) {
  uint64_t mixed = name + number * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
  return mixed ^ mixed >> 31;
}

// What is asked about a name: by a sum of both.
inline uint64_t name_subject(uint64_t sum) { return (uint64_t(1) << 63) | sum; }

}  // namespace holdfast::redundant
