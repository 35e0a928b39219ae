// Files on a pool that several processes write together and that nobody can find by a path: what a version of a checkpoint is before it is one.
// Who opens such a file is told where it lies by who has made it.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/catalog.hpp"
#include "catalog/located.hpp"

namespace holdfast::catalog {

// Directories for it on members of the pool, chosen and laid out as for any file of the pool. Its id ends with the digits of node `own`
// (digits_of_node). `owner`, a line, says whose it is: see remove_growing.
Result<Located> make_growing(const std::string& path, const std::string& own, uint32_t mode, const std::string& owner, const Settings& settings);
// The same file for another process, by the manifest that make_growing has made.
Located locate_growing(const layout::Manifest& manifest, const Settings& settings);
// On one member, of a file that is about to be written.
Status note_owner(target::Target& target, const std::string& directory, const std::string& owner);
// It is complete: nobody removes it any more.
void release_growing(const Located& located);
// Those of owners that are meant, and that were never completed, from all directories that answer. `is_meant` is asked by several threads at once.
void remove_growing(const std::vector<std::string>& directories, const std::function<bool(const std::string& owner)>& is_meant, uint64_t deadline_ms);

}  // namespace holdfast::catalog
