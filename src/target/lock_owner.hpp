// Who holds a lock by name: a process, said so that another one can tell whether it is dead.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::target {

struct LockOwner {
  std::string host, machine, boot;  // the host's name, /etc/machine-id, and the kernel's number of this start
  std::string space;                // of process and time namespace: in which pids and start times mean the same
  int process = 0;
  uint64_t start = 0;  // in ticks since the start of the kernel; 0: not known
  std::string job;     // of the batch system, where there is one
  std::string since;   // when it was taken, as people read it
  std::string number;  // of this one hold: no two are ever the same

  // "process 123 of node1 since 2026-01-31 10:00:00 UTC (job 7)"
  std::string sentence() const;
};

std::string encode(const LockOwner& owner);
// What cannot be read is nobody whose death could be proved.
LockOwner decode_lock_owner(std::string_view text);

// As the kernel tells it: it can be asked of libc only by setting it. 0777 where it does not say.
uint32_t umask_of_this_process();
// The kernel's number of this start; empty where it does not say.
const std::string& boot_of_this_machine();
// This process, also from inside of a companion, with a number of its own and the time of now.
LockOwner new_hold();
// Dead beyond doubt: this node has started anew since, or it runs in the same namespaces here and there is no such process any more. Silence
// and time prove nothing.
bool is_provably_dead(const LockOwner& owner);

}  // namespace holdfast::target
