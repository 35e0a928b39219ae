// Of a file that a process has open by several handles, one of several ranks and others of its own.
#pragma once
#include <string>

namespace holdfast::frontend {

// Whether this process has a protected file open to write, with other ranks, by that name. It is the same on all of them.
bool is_open_with_others(const std::string& filename);
// Collective over those ranks: what each of them has written by any handle of its own, or by theirs, is read by all of them from then on. MPI's code. A handle that
// cannot be synced keeps nobody from syncing the others: other ranks wait there.
int sync_handles_of(const std::string& filename);

}  // namespace holdfast::frontend
