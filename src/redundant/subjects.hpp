// What decisions are about.
#pragma once
#include <cstdint>

namespace holdfast::redundant {

enum class Subject : uint64_t { mpi_time = 1, time_of_day, seconds, processor, process_times, usage, random, clocks = 1 << 16 };

// Each clock of clock_gettime(2) is one of its own.
inline uint64_t clock_subject(int which) { return uint64_t(Subject::clocks) + uint32_t(which); }

}  // namespace holdfast::redundant
