#include "redundant/twins/kernel_waits.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <fmt/format.h>

#include "base/process_facts.hpp"
#include "base/quiet_thread.hpp"
#include "base/raw_syscalls.hpp"

namespace holdfast::redundant {

namespace {

int parent_of(int process) {
  const auto facts = process_facts(process);
  return facts ? int(facts->parent) : 0;
}

bool is_started_by(int process, int ancestor) {
  for (int at = parent_of(process); at > 1; at = parent_of(at))
    if (at == ancestor) return true;
  return false;
}

std::string command_of(int process) {
  std::string name = small_file(fmt::format("/proc/{}/comm", process));
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

// Some kernels and containers do not show what locks there are (/proc/locks knows no process that has ended, or is of another namespace).
// What a process has open, and what it waits in, they show.
std::optional<struct stat> file_at(int process, int fd) {
  struct stat state {};
  if (raw::fstatat(AT_FDCWD, fmt::format("/proc/{}/fd/{}", process, fd).c_str(), &state, 0) != 0) return std::nullopt;
  return state;
}

// The path of what `process` has open, where it has a lock of that file by it; else empty.
std::string path_of_lock(int process, const struct stat& file) {
  for (int fd : numbers_in(fmt::format("/proc/{}/fdinfo", process))) {
    if (small_file(fmt::format("/proc/{}/fdinfo/{}", process, fd)).find("\nlock:") == std::string::npos) continue;
    const auto locked = file_at(process, fd);
    if (!locked || locked->st_dev != file.st_dev || locked->st_ino != file.st_ino) continue;
    char path[PATH_MAX];
    const ssize_t bytes = raw::readlinkat(AT_FDCWD, fmt::format("/proc/{}/fd/{}", process, fd).c_str(), path, sizeof path);
    return bytes > 0 ? std::string(path, size_t(bytes)) : "a file";
  }
  return "";
}

// The file whose lock one of its threads waits for.
std::optional<struct stat> awaited_file(int process) {
  for (int thread : numbers_in(fmt::format("/proc/{}/task", process)))
    if (const auto fd = descriptor_of_awaited_lock(where_it_waits(process, thread))) return file_at(process, *fd);
  return std::nullopt;
}

}  // namespace

// "running" while it computes, "-1 ..." where it waits for no call.
std::string where_it_waits(int process, int thread) {
  std::string line = small_file(fmt::format("/proc/{}/task/{}/syscall", process, thread));
  const long call = std::strtol(line.c_str(), nullptr, 10);
  const bool waits = !line.empty() && *line.begin() >= '0' && *line.begin() <= '9';
  return waits && call != SYS_nanosleep && call != SYS_clock_nanosleep ? line : "";
}

namespace {

// Or with a child: that may take long, and ends by itself.
bool is_busy_with_a_file(const std::string& waits_in) {
  static constexpr long calls[] = {SYS_read,  SYS_readv,     SYS_pread64, SYS_preadv, SYS_write, SYS_writev, SYS_pwrite64, SYS_pwritev,
                                   SYS_fsync, SYS_fdatasync, SYS_wait4,   SYS_waitid, SYS_flock, SYS_fcntl,  SYS_sync,     SYS_syncfs};
  return std::ranges::count(calls, std::strtol(waits_in.c_str(), nullptr, 10)) > 0;
}

}  // namespace

std::optional<int> descriptor_of_awaited_lock(const std::string& waits_in) {
  std::istringstream words(waits_in);
  long call = -1;
  uint64_t fd = 0, command = 0;
  if (!(words >> call >> std::hex >> fd >> command)) return std::nullopt;
  const bool waits = call == SYS_flock || (call == SYS_fcntl && (command == F_SETLKW || command == F_OFD_SETLKW));
  return waits ? std::optional(int(fd)) : std::nullopt;
}

template <class Idle>
bool IdleThreads::look(const std::set<int>& known, Idle is_idle) {
  std::map<int, std::string> now;
  bool idle = true;
  for (int thread : numbers_in("/proc/self/task")) {
    if (known.contains(thread) || is_quiet_thread(thread)) continue;
    std::string waits_in = where_it_waits(::getpid(), thread);
    const auto last = waited_in_.find(thread);
    idle &= !waits_in.empty() && is_idle(waits_in) && last != waited_in_.end() && last->second == waits_in;
    now.emplace(thread, std::move(waits_in));
  }
  waited_in_ = std::move(now);
  return idle;
}

bool IdleThreads::are_all_but(int known, bool files_count) {
  return look({known}, [=](const std::string& waits_in) { return !files_count || !is_busy_with_a_file(waits_in); });
}

bool IdleThreads::all_but_these_wait_for_threads(const std::set<int>& known) {
  return look(known, [](const std::string& waits_in) { return std::strtol(waits_in.c_str(), nullptr, 10) == SYS_futex; });
}

std::string child_waits_for_lock_of(int twin) {
  for (int process : numbers_in("/proc")) {
    const auto file = is_started_by(process, ::getpid()) ? awaited_file(process) : std::nullopt;
    const std::string path = file ? path_of_lock(twin, *file) : "";
    if (path.empty()) continue;
    return fmt::format(
        "{} waits for a lock of {}, which its twin has by a process of its own: locks of processes that a program starts are each team's; "
        "let the program itself take the lock",
        command_of(process), path);
  }
  return "";
}

}  // namespace holdfast::redundant
