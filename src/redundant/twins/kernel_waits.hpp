// What threads wait in, as proc(5) shows it: those of this process, and of processes that it has started, whether one of these waits for a lock that a twin on
// the same node has.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>

namespace holdfast::redundant {

// What a thread waits in: the line of /proc/PID/task/TID/syscall. Empty where it computes, only lets time pass, or may not be looked at.
std::string where_it_waits(int process, int thread);
// Of the file whose lock it waits for (flock, fcntl); nothing: it waits for something else.
std::optional<int> descriptor_of_awaited_lock(const std::string& waits_in);

// This process's threads, but for our own.
class IdleThreads {
 public:
  // Each but `known`, which waits for a twin (0: all), has waited in one call since it was asked last: nothing but somebody else's call wakes it. The idle
  // threads of a library are so. `files_count`: one that waits for a file or a child ends by itself, and is not idle.
  bool are_all_but(int known, bool files_count = false);
  // Each but these has waited for another thread of this process since it was asked last.
  bool all_but_these_wait_for_threads(const std::set<int>& known);
  // Nobody asks for now: what was seen is too old to tell who has waited since.
  void forget() { waited_in_.clear(); }

 private:
  template <class Idle>
  bool look(const std::set<int>& known, Idle is_idle);

  std::map<int, std::string> waited_in_;
};

// The file, by its path, and the process that waits; empty where there is none. A lock of flock(2) stays with who has the file open, also when the process
// that took it has ended: so what counts is what `twin` has open.
std::string child_waits_for_lock_of(int twin);

}  // namespace holdfast::redundant
