// What takes a protected file's place at its path, and looks as that did.
#pragma once
#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/located.hpp"

namespace holdfast::catalog {

// The permission bits of the file at its path: as the user has made them since the creation, where a stub there says so.
uint32_t mode_at_path(const layout::Manifest& manifest);
// Why another file cannot take this one's place at its path without anybody seeing it.
Status check_can_give_way(const Located& located);
// The protected file `by`, on the same file system, has this one's bytes. It takes its place by one rename, with owner, times and attributes of what
// stood there. What this one had on its targets goes. `by` follows. What is cut short leaves one of them there. Under the file's lock, where nobody
// has it open for writing.
Status give_way_to_another(const Located& located, Located& by, const Settings& settings);

}  // namespace holdfast::catalog
