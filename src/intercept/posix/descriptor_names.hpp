// Names that the kernel has for open descriptors: /proc/self/fd/N, /dev/fd/N, /dev/stdin ... Of a protected file's, or one's with buffers,
// they would lead into Holdfast's own memory.
#pragma once
#include <string>

namespace holdfast::intercept::posix {

// The number of this process that `path` names; -1 where it names none.
int number_named(const char* path);
// The same where it is a number of a protected file, or of one with buffers.
int served_number_named(const char* path);
// What then is to be opened or changed instead: the file's own path, of a plain file the name of its own descriptor. Also for a name of
// another process's descriptor (/proc/PID/fd/N). Empty where `path` is no such name.
std::string path_instead(const char* path);
// The file's own path, for a program to read, where `path` is a link in a directory of descriptors; empty otherwise.
std::string path_shown(const char* path);

}  // namespace holdfast::intercept::posix
