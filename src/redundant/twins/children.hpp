// Processes that this one has started, as the kernel shows them: whether one of them waits for a lock that a twin on the same node has open.
#pragma once
#include <string>
#include <vector>

namespace holdfast::redundant {

// A line of /proc/locks.
struct KernelLock {
  int process = 0;
  std::string file;  // device and inode
  bool waits = false;
};
std::vector<KernelLock> locks_in(const std::string& text);

// The file, by its path, and the process that waits; empty where there is none. A lock of flock(2) stays with who has the file open, also when the process
// that took it has ended: so what counts is what `twin` has open.
std::string child_waits_for_lock_of(int twin);

}  // namespace holdfast::redundant
