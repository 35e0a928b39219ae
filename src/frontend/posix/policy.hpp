// Which files that a program opens by plain file calls are protected, or get buffers: those that a glob names.
#pragma once
#include <sys/types.h>

#include <string>

#include "base/config.hpp"

namespace holdfast::frontend::posix {

// Whether files at this absolute path are to be protected. Without a glob none is: a program opens many files that are not its data.
bool names(const Settings& settings, const std::string& absolute_path);

// Whether a plain file at this path gets buffers. Where files are protected, those are the ones that get them.
bool buffers(const Settings& settings, const std::string& absolute_path);

// Makes an empty plain file with the stripes that the user asked for, where he asked for any, a glob names it, it is not to be protected, and
// nothing is at `path` (relative to `directory`) yet. False: the program's own open makes the file, or has the right error.
bool make_with_stripes(const Settings& settings, int directory, const char* path, const std::string& absolute_path, mode_t mode);

}  // namespace holdfast::frontend::posix
