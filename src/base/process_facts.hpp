// What the kernel says of a process of this node (proc(5), /proc/PID/stat).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast {

struct ProcessFacts {
  bool is_over = false;      // it has ended and only waits for its parent to notice
  int parent = 0;            // 0: not of this process namespace
  uint64_t began_ticks = 0;  // since the node was started; numbers of processes come again, with another time
};

// Nothing where there is no such process, or /proc does not show it. Of this process's namespace only if /proc is: see proc_is_ours().
std::optional<ProcessFacts> process_facts(int process);

// In a process namespace whose /proc is another's, numbers there are other processes.
bool proc_is_ours();

// The first 4 KiB of a file such as the kernel makes; empty where it cannot be read. By system calls alone.
std::string small_file(const std::string& path);
// What is named by a number in a directory of /proc: processes, threads, descriptors. Empty where it cannot be read. By system calls alone.
std::vector<int> numbers_in(const std::string& path);

}  // namespace holdfast
