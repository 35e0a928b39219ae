// Versions of checkpoints in a pool: protected files without a path, each written once (engine/write_once.hpp). There is no list of them: what
// the members' final manifests say is all there is. Small ones of one node and step may be stored together, as the files of a pack (layout/pack.hpp).
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/catalog.hpp"
#include "catalog/domains.hpp"

namespace holdfast::catalog {

// Which nodes of `all` (addresses, in the pool's order) keep what `own` writes. Groups are disjoint, of `width` neighbours; what is left over goes one
// by one to the last ones (layout/groups.hpp). `own` first, then its neighbours in turn.
std::vector<std::string> group_of(const std::vector<std::string>& all, const std::string& own, size_t width);
// The same where nodes are lost together: no group has more nodes of a rack than it must. A node that `domains` does not name is a rack of its own.
// `own` first, then each time one of the rack of which the fewest have come.
std::vector<std::string> group_of(const std::vector<std::string>& all, const std::string& own, size_t width, const Domains& domains);
// In which order the nodes of own's group are asked to keep a unit of each row. `remote`: the group has a node more, and `own` comes last, so that it
// serves only while others are too few.
std::vector<std::string> keepers_of(const std::vector<std::string>& all, const std::string& own, size_t width, const Domains& domains, bool remote);

// Members and their directories for a version with `bytes` of content that is about to be written on node `own` (an address of
// `settings.local`). Nodes that do not answer are lost members where fewer are left in the group than a row has units.
// Where the group has fewer than K + 1 others of the job take their places; Kind::lost where these are too few as well. `of`: the version that it
// takes the place of. Each directory has a note with run, attempt and step until release_growing (growing.hpp). `left_out`: nodes that take no part, by address. Those that cannot make its directory are added.
using LeftOut = std::map<std::string, Status>;
Result<Located> prepare_version(const layout::Version& version, const std::string& own, uint64_t bytes, uint32_t mode, const Settings& settings,
                                const layout::Manifest* of = nullptr, LeftOut* left_out = nullptr);
// The same for one that takes the place of `of`, whose members that answer keep theirs. Nodes of `nodes` that are none of them take the others'; where
// these are too few, Kind::unsupported. Who cannot make its directory is a lost member.
Result<Located> prepare_successor(const Located& of, const std::vector<std::string>& nodes, const Settings& settings);
// The same for one of another name, with the content of `of`, on the same members. Kind::unsupported where one of these is lost.
Result<Located> prepare_renamed(const Located& of, const layout::Version& version, const std::string& own, uint32_t mode);
// A version's id ends with so many digits that are the same for all that one node has written.
inline constexpr size_t node_digits = 8;
std::string digits_of_node(const std::string& address);
inline std::string node_digits_of(const std::string& file_id) { return file_id.substr(file_id.size() - std::min(file_id.size(), node_digits)); }
std::string digits_of_path(const std::string& path);  // in the note of who writes a version of a file that is protected by itself

struct FoundVersion {
  layout::Manifest manifest;     // its path is the version's file, for messages
  std::vector<std::string> on;   // members that have its directory, by path, of those that are not stale
  uint64_t missing_members = 0;  // stale, or without it
  uint64_t copies = 0;           // of its manifest, on those that have the directory
  bool readable() const { return missing_members <= uint64_t(manifest.geometry.scheme.m); }
  bool is_complete() const { return copies == manifest.members.size(); }
  // A copy is left after as many further losses as its units bear. Its writer sees to that, or has died before.
  bool endures() const { return copies + missing_members > uint64_t(manifest.geometry.scheme.m); }
};

// What a pool holds, asked again and again: a copy of a manifest that was read once is final, and is not read again.
class VersionList {
 public:
  // Directories that do not answer are passed over. Kind::lost where none answers. Each file of a pack is a version.
  Result<std::vector<FoundVersion>> look(const std::vector<std::string>& directories, uint64_t deadline_ms);
  // Those that the last look has passed over.
  const std::vector<std::string>& silent() const { return silent_; }
  // Whether the last look has met a directory of a file of that name, and could not read whose it is: one that grows, or that gives way just now to what was
  // made anew of it. Such a look may have met neither.
  bool may_miss(const std::string& path) const;

 private:
  struct Known {
    std::shared_ptr<const layout::Manifest> manifest;
    std::set<std::string> copies_on;  // uuids of members that have shown theirs
  };
  std::set<std::string> shown_by(const std::string& uuid) const;
  std::map<std::string, Known> known_;  // by directory name
  std::vector<std::string> silent_;
  std::set<std::string> unread_;  // directories
};

// A version with its members as they are now: what it is stored in, which may be a pack.
Located locate_version(const layout::Manifest& manifest, const Settings& settings);
// Its directories on all members that answer, and with a pack's all of its files.
Status remove_version(const Located& located);

}  // namespace holdfast::catalog
