// MPI_Abort is a door of ours. An error for which the MPI itself ends the program is not: its ranks tell their launcher, which ends all of them at once, before
// they come to an exit handler. MPICH's and those that are made of it write a line for that into a descriptor that the launcher gave them (PMI-1 and PMI-2: cmd=abort).
#pragma once
#include <cstddef>

namespace holdfast::intercept::posix {

inline int launchers_number = -1;  // of that descriptor; negative: there is none

// What is about to be written there.
void is_told_to_launcher(const void* text, size_t bytes);

}  // namespace holdfast::intercept::posix
