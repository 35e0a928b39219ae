// The catalog: from the user's path to a protected file and back. What stands at the user's path (plain file, link to
// a whole copy, stub), the sidecar `.NAME.holdfast/` beside it, target sets and their markers.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/located.hpp"
#include "layout/manifest.hpp"

namespace holdfast::catalog {

// A target set: directories known by identity. Each holds `holdfast-target.json` (the marker): format, set id, epoch,
// own uuid, own index, and all members' uuids and paths; closed by a checksum line like the manifest.
struct TargetSet {
  std::string id;
  uint64_t epoch = 0;
  std::vector<Member> members;  // in the markers' order; lost ones have no target
  bool pool = false;            // no set: those directories of pools that were named (pool.hpp)
};

// Opens the set of which `directories` are members. Or makes one of them all, where none has a marker and each exists and is empty but for hidden
// entries of file systems (lost+found). One sentence each for: a directory that does not exist and that no marker names; one that belongs to another
// set; fewer than `width`; one that is not empty and has no marker. Also for the same directory twice (or the same device, unless `allow_shared`;
// only where the user did not give them as --targets).
Result<TargetSet> open_or_create_set(const std::vector<std::string>& directories, const Settings& settings);
// The set where all its members are named and there, with markers of one epoch: each is asked once. Kind::not_found where that is not so. `mode`:
// permission bits of what is made there.
Result<TargetSet> open_whole_set(const std::vector<std::string>& directories, const Settings& settings, uint32_t mode);
// The set of which one that is there, with its marker, is a member; Kind::not_found where none is. Never makes one, and asks no width.
Result<TargetSet> open_set(const std::vector<std::string>& directories, const Settings& settings);
// Makes an empty directory ready to take the place of member `old_path`: a marker with its new uuid, of which no other member is told.
// Asked again it answers the same, so that what was interrupted goes on. replace_member with the same paths tells the set.
Result<Member> prepare_replacement(const std::string& any_member, const std::string& old_path, const std::string& new_path, const Settings& settings);
// Puts an empty directory in the place of member `old_path`, or one at the same path, adopted by name, or the one that was prepared for that: new
// uuid, epoch + 1.
Result<TargetSet> replace_member(const std::string& any_member, const std::string& old_path, const std::string& new_path, const Settings& settings);

enum class PathKind : uint8_t {
  absent,
  empty,           // a regular file of size 0, not protected
  plain,           // a regular file with content, not protected
  protected_file,  // ours, whatever it looks like
  other,           // directory, device, ...
};

// Looks at a path without opening targets. It is cheap: for a plain file at most one stat beyond the open. A sidecar is looked for only where the
// path is absent, empty, dangling, a link, or when `thorough`. Never fails for want of permission: then it is `other`.
PathKind kind_of(const std::string& path, bool thorough = true);

// Whether what is at the path is what a power cut can leave of a file's creation. That is nobody's content or a way to targets, and a sidecar whose
// manifest is missing, empty or zeros. Its targets are not asked. create() makes the file anew where they know nothing of it, and says Kind::exists
// where one does.
bool is_torn_creation(const std::string& path);

struct LocateOptions {
  // For repair: hand back, as Located::replacements, the targets that the set names in the places of the file's members.
  bool adopt_replacements = false;
  // For repair --revert and rm: what was edited at the path from outside is no error, and publish() replaces it.
  bool ignore_edits = false;
};

// Finds the protected file at `path` and opens its members. It understands a stub that was moved or copied, a sidecar that is gone, a path that is
// gone but named by `settings.targets`. Checks the marker of each member. Members whose uuid is not the one that the manifest names are handed back
// as lost ("replaced; run: holdfast repair PATH"). Kind::not_found: not protected. Kind::stale / invalid: a plain file or link that was edited from
// outside, with the two ways out.
Result<Located> locate(const std::string& path, const Settings& settings, LocateOptions options = {});

// Makes the file's directories, sidecar and path entry for a new protected file (or an empty one, in its place). Chooses placement and layout from
// `settings` where the user left it open, and checks them. In a single directory asks the file system for the layout. `to_write`: for who opens it
// to write at once. Where all targets are there the file's first manifest names that opener (Located::opener), so that the open has no other to
// write.
Result<Located> create(const std::string& path, const Settings& settings, uint32_t mode, bool to_write = false);

// Objects on all reachable members, sidecar, path entry. Of a link of the user's own the link alone.
Status remove(const std::string& path, const Settings& settings);
Status rename(const std::string& from, const std::string& to, const Settings& settings);
// The protected file `from` takes the place of the protected file `to`, by one rename: whoever looks finds one of them there. What was there is
// the file `aside` then, in the same directory, by its sidecar alone. Kind::unsupported, and nothing changed, where one of the two cannot be
// found without its sidecar.
Status replace(const std::string& from, const std::string& to, const std::string& aside, const Settings& settings);

// The plain file `copy` takes the place of this protected file at its path, by one rename, and the protected file goes. Both lie in one directory. What is
// cut short leaves one of them there. Under the file's lock, where nobody has it open for writing.
Status give_way_to_plain(const Located& located, const std::string& copy, const Settings& settings);

// All protected files that the members of this set hold, from their manifests: path and manifest, newest epoch each.
Result<std::vector<layout::Manifest>> list_set(const TargetSet& set);

}  // namespace holdfast::catalog
