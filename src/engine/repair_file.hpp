// `holdfast repair` of one file from its path on: finding it, members that are to be replaced, the repair, and the set told of it.
#pragma once
#include <string>
#include <vector>

#include "engine/maintenance.hpp"

namespace holdfast::engine {

// Absolute paths: the directory of a member, and the empty one that is to take its place (the same path: the member's own, emptied).
struct Replacement {
  std::string old_path, new_path;
};

struct FileRepair : RepairReport {
  size_t written_anew = 0;  // over so many nodes (restripe.hpp); all that a repair counts is 0 then
};

// May be interrupted, and asked again. `revert`: what was edited at the path from outside is replaced. `live`, of a file on a pool: directories, of
// which some that answer replace lost members. If these are too few, the file is written anew over those that live.
Result<FileRepair> repair_file(const std::string& path, const std::vector<Replacement>& replacements, bool revert, const Settings& settings,
                               const Progress& progress, const std::vector<std::string>* live = nullptr);

}  // namespace holdfast::engine
