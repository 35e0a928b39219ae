// Which files that a program opens by plain file calls are protected, or get buffers: those that a glob names.
#pragma once
#include <string>

#include "base/config.hpp"

namespace holdfast::frontend::posix {

// Whether files at this absolute path are to be protected. Without a glob none is: a program opens many files that are not its data.
bool names(const Settings& settings, const std::string& absolute_path);

// Whether a plain file at this path gets buffers. Where files are protected, those are the ones that get them.
bool buffers(const Settings& settings, const std::string& absolute_path);

}  // namespace holdfast::frontend::posix
