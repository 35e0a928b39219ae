// What a replica starts, by fork or by another program in a child, is none. What it writes to files that teams share is there once for each team.
#pragma once
#include <atomic>
#include <string>

namespace holdfast::intercept::posix {

inline std::atomic<bool> is_child_of_replica{false};
// This process is one.
void begins_as_child();
// What such a process appends is there once, where it has whom to ask.
bool asks_before_appends();
// What it appends by this open is to be there once for all teams.
bool appends_for_all(int directory, const char* path, int flags);
bool appends_for_all(const std::string& full);
// Of such a process, before it opens a file so that it can change it: the user is told once for the job.
void tell_of_write(int directory, const char* path);

}  // namespace holdfast::intercept::posix
