// The program's threads, by numbers that are the same in all replicas: who has started one, and as its which. Replicas count what they ask for each of them.
#pragma once
#include <atomic>
#include <cstdint>

#include "redundant/subjects.hpp"

namespace holdfast::redundant {

// 0: the first thread, or one that nobody has counted.
struct ProgramThread {
  uint32_t number = 0, started = 0;
};

inline std::atomic<bool> program_has_started_threads{false};
inline constinit thread_local ProgramThread this_program_thread __attribute__((tls_model("initial-exec")));

// Of the next one that this thread starts. Those of the first thread have numbers of their own, up to half of all. Of the others two that live at once may
// have the same one. Then they have the answers of a clock in common.
inline uint32_t next_thread_number() {
  constexpr uint32_t half = 1u << (thread_bits - 1);
  const ProgramThread& here = this_program_thread;
  const uint64_t mixed = open_subject(here.number, here.started + 1);
  return here.number == 0 ? here.started % (half - 1) + 1 : half + uint32_t(mixed % half);
}

}  // namespace holdfast::redundant
