// MPI's calls that are not about files, of this process: how many, and their time, by what they do.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace holdfast::profile {

enum class MpiCalls : uint8_t { message, wait, collective, window, communicator };
// As the log has them.
inline constexpr std::array<std::string_view, 5> mpi_calls_names{"message", "wait", "collective", "window", "communicator"};
inline constexpr size_t mpi_calls_kinds = mpi_calls_names.size();

struct MpiCallsOfOneKind {
  std::atomic<uint64_t> calls, ticks;
};
using CountedMpiCalls = std::array<MpiCallsOfOneKind, mpi_calls_kinds>;

namespace live {
extern std::atomic<CountedMpiCalls*> mpi_calls;  // in this process's piece; null where nobody asks
}  // namespace live

inline void count(MpiCalls kind, uint64_t begin, uint64_t end) {
  CountedMpiCalls* const all = live::mpi_calls.load(std::memory_order_acquire);
  if (!all) return;
  MpiCallsOfOneKind& one = (*all)[size_t(kind)];
  one.calls.fetch_add(1, std::memory_order_relaxed);
  one.ticks.fetch_add(end - begin, std::memory_order_relaxed);
}

}  // namespace holdfast::profile
