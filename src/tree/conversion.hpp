// A plain file that becomes a protected one: at a rename into the policy, or over a protected file.
#pragma once
#include <sys/types.h>

#include <string>

#include "base/config.hpp"
#include "base/status.hpp"

namespace holdfast::tree {

// Whether a process has what `source`, a descriptor that can only be read, leads to open for writing. The kernel gives a lease to readers where nobody
// has. False where it gives no leases (another's file, some file systems).
bool is_leased_to_writers(int source);

// Makes the protected file `path` with what `source`, a descriptor that can be read, holds; durable when it returns. Where that fails nothing
// is left of it, and Kind::busy says that the source has changed meanwhile.
Status protect_copy(int source, const std::string& source_path, const std::string& path, mode_t mode, const Settings& settings);

// The settings by which the file at `path` was made, for one that takes its place. With `heed_user` what the settings say of placement, unit and
// targets stays as they say it.
Settings made_like(const std::string& path, const Settings& settings, bool heed_user = false);

}  // namespace holdfast::tree
