// Opening for those who are not the program's open: streams.
#pragma once
#include <string>

#include "intercept/posix/descriptors.hpp"

namespace holdfast::intercept::posix {

// Whether an open with these flags, that writes or creates, is of a protected file or of one that the policy names.
bool concerns(int directory, const char* path, int flags);
// Whether the policy names a file at this path, absolute or relative to the working directory.
bool is_named(const std::string& full);
// Whether an open with these flags is of a protected file, or of one that is to be protected.
bool is_for_protection(int directory, const char* path, int flags);
// Makes an empty plain file with the stripes that the user asked for. That is where an open with these flags and this mode is to create one that
// the policy names. The program's own open has to find it, or to make it where this answers false.
bool make_with_stripes(int directory, const char* path, int flags, mode_t mode);
// In a redundant job: whether an open with these flags is made once for all replicas.
bool is_coordinated(int directory, const char* path, int flags);
// The same of one that has been opened to be read, by its descriptor.
bool is_to_be_served(int fd, int directory, const char* path);
// Whether this process has the plain file open with buffers before it: what is in them is not in the kernel's file yet.
bool is_open_with_buffers(int directory, const char* path);

}  // namespace holdfast::intercept::posix
