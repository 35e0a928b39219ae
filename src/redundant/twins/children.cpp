#include "redundant/twins/children.hpp"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "base/process_facts.hpp"
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

// The path of what `process` has open, where it has a lock of that file by it; else empty.
std::string path_of_lock(int process, const std::string& file) {
  constexpr int most_numbers = 1024;
  constexpr const char* mark = "lock:";
  for (int fd = 0; fd < most_numbers; ++fd) {
    const std::string text = small_file(fmt::format("/proc/{}/fdinfo/{}", process, fd));
    const size_t at = text.find(mark);
    if (at == std::string::npos) continue;
    const auto locks = locks_in(text.substr(at));
    if (std::none_of(locks.begin(), locks.end(), [&](const KernelLock& lock) { return lock.file == file; })) continue;
    char path[PATH_MAX];
    const ssize_t bytes = raw::readlinkat(AT_FDCWD, fmt::format("/proc/{}/fd/{}", process, fd).c_str(), path, sizeof path);
    return bytes > 0 ? std::string(path, size_t(bytes)) : "a file";
  }
  return "";
}

}  // namespace

std::vector<KernelLock> locks_in(const std::string& text) {
  std::vector<KernelLock> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    KernelLock lock;
    std::istringstream words(line);
    std::string number, kind, strength, type;
    words >> number;
    if (number == "lock:") words >> number;
    words >> kind;
    if (kind == "->") lock.waits = true, words >> kind;
    if (words >> strength >> type >> lock.process >> lock.file) all.push_back(std::move(lock));
  }
  return all;
}

std::string child_waits_for_lock_of(int twin) {
  for (const KernelLock& lock : locks_in(long_file("/proc/locks"))) {
    if (!lock.waits || !is_started_by(lock.process, ::getpid())) continue;
    const std::string path = path_of_lock(twin, lock.file);
    if (!path.empty())
      return fmt::format(
          "{} waits for a lock of {}, which its twin has by a process of its own: locks of processes that a program starts are each team's; "
          "let the program itself take the lock",
          command_of(lock.process), path);
  }
  return "";
}

}  // namespace holdfast::redundant
