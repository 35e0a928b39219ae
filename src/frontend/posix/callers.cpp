#include "frontend/posix/callers.hpp"

#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string_view>

// Where this library, or the program that has this code, begins and ends: the linker's.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start, _end;

namespace holdfast::frontend::posix {

namespace {

// Code of one object. Written once, then read without a lock.
struct Range {
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<bool> program{false}, cxx{false};
};
constexpr size_t most_ranges = 4096;
std::array<Range, most_ranges> ranges;
std::atomic<size_t> known{0};
std::mutex mutex;

const Range* find(uintptr_t at) {
  const size_t count = known.load(std::memory_order_acquire);
  for (size_t i = count; i-- > 0;)  // a later object may lie where one was that has gone
    if (at >= ranges[i].begin.load(std::memory_order_relaxed) && at < ranges[i].end.load(std::memory_order_relaxed)) return &ranges[i];
  return nullptr;
}

struct Look {
  uintptr_t at;
  uintptr_t begin = 0, end = 0;
  std::string name;
};

int look_at(dl_phdr_info* info, size_t, void* handed) {
  auto& look = *static_cast<Look*>(handed);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X) || look.at < begin || look.at >= begin + segment.p_memsz) continue;
    look.begin = begin, look.end = begin + segment.p_memsz;
    look.name = info->dlpi_name ? info->dlpi_name : "";
    return 1;
  }
  return 0;
}

// Without a lock: the loader's is held by a thread that loads a library, and the library's own threads must not wait for what that one waits for.
bool is_ours(uintptr_t at) { return at >= reinterpret_cast<uintptr_t>(&__ehdr_start) && at < reinterpret_cast<uintptr_t>(&_end); }

bool learn(uintptr_t at) {
  Look look{at, 0, 0, {}};
  dl_iterate_phdr(look_at, &look);
  if (look.end == 0) return true;  // code that the program has made itself
  const bool program = !is_part_of_mpi(look.name);
  std::lock_guard lock(mutex);
  const size_t next = known.load(std::memory_order_relaxed);
  if (next < most_ranges && !find(at)) {
    ranges[next].begin.store(look.begin, std::memory_order_relaxed);
    ranges[next].end.store(look.end, std::memory_order_relaxed);
    ranges[next].program.store(program, std::memory_order_relaxed);
    ranges[next].cxx.store(look.name.find("/libstdc++.so") != std::string::npos, std::memory_order_relaxed);
    known.store(next + 1, std::memory_order_release);
  }
  return program;
}

bool is_of_cxx_library(uintptr_t at) {
  if (is_ours(at)) return false;
  if (!find(at)) (void)learn(at);
  const Range* const range = find(at);
  return range && range->cxx.load(std::memory_order_relaxed);
}

// From the door on, until code that is neither ours nor the C++ library's is found.
_Unwind_Reason_Code look_beyond(_Unwind_Context* frame, void* found) {
  const uintptr_t at = _Unwind_GetIP(frame);
  if (is_ours(at) || is_of_cxx_library(at)) return _URC_NO_REASON;
  *static_cast<uintptr_t*>(found) = at;
  return _URC_NORMAL_STOP;
}

}  // namespace

bool is_part_of_mpi(const std::string& path) {
  static constexpr std::string_view names[] = {"libmpi",   "libopen-", "libopal", "libprrte", "libpmi",     "libuc",     "libfabric",
                                               "libhwloc", "libevent", "mca_",    "libefa",   "libibverbs", "librdmacm", "libpsm",
                                               "libmpich", "libxpmem", "libmca_", "libompi",  "ompi_",      "liboshmem"};
  // Not Open MPI's own, by which a program's libraries lie as well (/usr/lib64/openmpi/lib): what it loads has these names.
  static constexpr std::string_view folders[] = {"/ucx/", "/pmix/", "/pmix2/", "/prte/", "/libfabric/"};
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  const auto begins = [&](std::string_view with) { return name.starts_with(with); };
  const auto holds = [&](std::string_view folder) { return path.find(folder) != std::string::npos; };
  return std::any_of(std::begin(names), std::end(names), begins) || std::any_of(std::begin(folders), std::end(folders), holds);
}

bool is_of_the_program(const void* caller) {
  const auto at = reinterpret_cast<uintptr_t>(caller);
  if (is_ours(at)) return false;
  const Range* const range = find(at);
  return range ? range->program.load(std::memory_order_relaxed) : learn(at);
}

bool are_of_one_object(const void* caller, const void* other) {
  const auto range_of = [](const void* code) {
    const auto at = reinterpret_cast<uintptr_t>(code);
    if (!find(at)) (void)learn(at);
    return find(at);
  };
  const Range* const its = range_of(caller);
  return its && its == range_of(other);
}

const void* beyond_cxx_library(const void* caller) {
  uintptr_t at = reinterpret_cast<uintptr_t>(caller);
  if (is_of_cxx_library(at)) (void)_Unwind_Backtrace(look_beyond, &at);
  return reinterpret_cast<const void*>(at);
}

bool is_of_mpi(const void* caller) { return !is_ours(reinterpret_cast<uintptr_t>(caller)) && !is_of_the_program(caller); }

}  // namespace holdfast::frontend::posix
