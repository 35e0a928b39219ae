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
  clocks = 1 << 16
};

// About messages: of requests one, of each communicator one for each kind of question.
enum class Messages : uint64_t { requests, together, matches, probes, taken_probes, kinds };
inline uint64_t message_subject(Messages kind, uint64_t communicator = 0) {
  return (uint64_t(1) << 40) + communicator * uint64_t(Messages::kinds) + uint64_t(kind);
}

// Each clock of clock_gettime(2) is one of its own.
inline uint64_t clock_subject(int which) { return uint64_t(Subject::clocks) + uint32_t(which); }

// What is asked about a name: by a sum of both.
inline uint64_t name_subject(uint64_t sum) { return (uint64_t(1) << 63) | sum; }

}  // namespace holdfast::redundant
