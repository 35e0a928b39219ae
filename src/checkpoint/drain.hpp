// A whole checkpoint becomes plain files, at the user's own paths or elsewhere.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "checkpoint/choice.hpp"
#include "engine/maintenance.hpp"
#include "layout/manifest.hpp"

namespace holdfast::checkpoint {

// Where a file goes, by the path at which the program wrote it.
using Place = std::function<Result<std::string>(const std::string& file)>;
Result<std::string> own_place(const std::string& file);

struct Drained {
  uint64_t bytes = 0;
  std::vector<std::string> files;  // as they were placed, in the order of the manifests
};
// `files`: the manifests of all files of one checkpoint. Each is written in a directory beside its place, checked block by block while it is read,
// and synced. When all are there each is renamed to its place. Where one fails none has a new content. What a drain that was killed has left
// there is removed. `progress`: false ends it.
Result<Drained> drain(const std::vector<layout::Manifest>& files, const Place& place, const Settings& settings, const engine::Progress& progress);
// The same to their own places, of a checkpoint with these ages. The nodes keep a record of it (drained.hpp). Where it cannot be kept the files are there all the same: only
// a restart in this run would not know. Files of no checkpoint stand each for itself, so these are noted before they are placed as well: of a drain that ends in between
// it is known which versions it has left, and what is removed is not there again.
// `running`: says which attempt runs when the files have their places, where one does. It may have begun with what an older drain has left.
Result<Drained> drain_to_own_places(const std::vector<layout::Manifest>& files, const Ages& ages, const Settings& settings,
                                    const engine::Progress& progress, const std::function<layout::Attempt()>& running = {});
// Some drain has begun to bring files into that one's directory, and has not ended, or was killed.
bool is_drain_beside(const std::string& path);

}  // namespace holdfast::checkpoint
