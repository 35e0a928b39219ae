// The job's log as far as shared pointers go: one line for each file that was closed, in the log directory.
#pragma once
#include <string>

#include "base/settings/profile.hpp"
#include "frontend/shared_pointer/shared_pointer.hpp"

namespace holdfast::frontend {

// `access.serving()` served the file at `path`, which `ranks` processes had open together. Nothing where no log directory is set; a log that cannot be written is said once.
void log_shared_pointer(const std::string& path, int ranks, const ProfileSettings& settings, const SharedAccess& access);

}  // namespace holdfast::frontend
