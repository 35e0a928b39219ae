#include "file/coordinated/threads.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace holdfast::file {

namespace {

struct ThreadsOn {
  uint64_t first = 0;
  bool are_several = false;
};
struct ThreadsOnPaths {
  std::mutex mutex;
  std::map<std::string, ThreadsOn> of;
};
ThreadsOnPaths& threads_on_paths() {
  static auto* const all = new ThreadsOnPaths;  // never destroyed: files are used to the end
  return *all;
}

// The system's numbers come again when a thread has ended.
uint64_t number_of_this_thread() {
  static std::atomic<uint64_t> last{0};
  static thread_local const uint64_t own = ++last;
  return own;
}

}  // namespace

void note_thread_on(const std::string& path) {
  std::lock_guard lock(threads_on_paths().mutex);
  ThreadsOn& threads = threads_on_paths().of.try_emplace(path, ThreadsOn{number_of_this_thread()}).first->second;
  threads.are_several |= threads.first != number_of_this_thread();
}

std::string said_of_threads_on(const std::string& path) {
  std::lock_guard lock(threads_on_paths().mutex);
  const auto threads = threads_on_paths().of.find(path);
  if (threads == threads_on_paths().of.end() || !threads->second.are_several) return "";
  return "; several threads use this file, and which of them comes first may differ between replicas: let one thread make all calls on it";
}

}  // namespace holdfast::file
