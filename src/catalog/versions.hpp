// Versions of checkpoints in a pool: protected files without a path, each written once (engine/write_once.hpp). There is no list of them: what
// the members' final manifests say is all there is.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/catalog.hpp"

namespace holdfast::catalog {

// Which nodes of `all` (addresses, in the pool's order) keep what `own` writes: disjoint groups of `width` neighbours, the last one with the
// remainder. `own` first, then its neighbours in turn.
std::vector<std::string> group_of(const std::vector<std::string>& all, const std::string& own, size_t width);

// Members and their directories for a version with `bytes` of content that is about to be written on node `own` (an address of
// `settings.local`). Nodes that do not answer are lost members where fewer are left in the group than a row has units.
// Kind::lost where they are fewer than K + 1. `of`: the version that it takes the place of.
Result<Located> prepare_version(const layout::Version& version, const std::string& own, uint64_t bytes, uint32_t mode, const Settings& settings,
                                const layout::Manifest* of = nullptr);
// A version's id ends with so many digits that are the same for all that one node has written.
inline constexpr size_t node_digits = 8;
std::string digits_of_node(const std::string& address);

struct FoundVersion {
  layout::Manifest manifest;     // its path is the version's file, for messages
  std::vector<std::string> on;   // members that have its directory, by path, of those that are not stale
  uint64_t missing_members = 0;  // stale, or without it
  bool readable() const { return missing_members <= uint64_t(manifest.geometry.scheme.m); }
};

// What a pool holds, asked again and again: manifests that were read once are final, and are not read again.
class VersionList {
 public:
  // Directories that do not answer are passed over. Kind::lost where none answers.
  Result<std::vector<FoundVersion>> look(const std::vector<std::string>& directories, uint64_t deadline_ms);

 private:
  std::map<std::string, layout::Manifest> known_;  // by directory name
};

// A version with its members as they are now.
Located locate_version(const layout::Manifest& manifest, const Settings& settings);
// Its directories on all members that answer.
Status remove_version(const Located& located);

}  // namespace holdfast::catalog
