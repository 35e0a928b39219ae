// What a replica starts, by fork or by another program in a child, is none. What it writes to files that teams share is there once for each team.
#pragma once
#include <atomic>

namespace holdfast::intercept::posix {

inline std::atomic<bool> is_child_of_replica{false};
// Of such a process, before it opens a file so that it can change it: the user is told once for the job.
void tell_of_write(int directory, const char* path);

}  // namespace holdfast::intercept::posix
