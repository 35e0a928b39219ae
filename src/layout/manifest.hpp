// The manifest: everything about a protected file that is not its bytes. A copy lies on every member and one in the
// sidecar beside the user's path. Text (JSON) closed by a line with its checksum; docs/format.md describes it.
//
// A reader must survive any bytes whatever: decode() is fuzzed, bounds every number and string, and refuses names
// that could leave a target. The newest epoch among M+1 members, or the sidecar's, is the truth.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "layout/attempt.hpp"
#include "layout/geometry.hpp"

namespace holdfast::layout {

inline constexpr int manifest_format = 2;          // 2: openers that know of each other (`lone`, `cut_to`, parts in journals)
inline constexpr int pool_manifest_format = 3;     // of files on pools alone; all others keep what older readers know
inline constexpr int version_manifest_format = 4;  // of versions of checkpoints, which are on pools too
inline constexpr int wide_manifest_format = 5;     // of files of more than max_members members, which are on pools too
inline constexpr int pack_manifest_format = 6;     // of small files of a checkpoint that share one protected file
inline constexpr int newest_manifest_format = pack_manifest_format;
inline constexpr uint64_t max_manifest_bytes = 1 << 20;
inline constexpr size_t max_open_generations = 4096;  // decode() refuses more of either
inline constexpr size_t max_nodes = 2000;             // of one member; a Lustre file has no more stripes
inline constexpr size_t max_rolled_files = 65536;     // of one roll; a manifest has room for fewer where their names are long
inline constexpr size_t max_packed_files = 4096;      // of one pack
inline constexpr size_t max_journals = 16384;         // one per rank of the largest job, and some

struct ManifestMember {
  std::string uuid;    // of the target at that place when the file was last whole there (32 hex digits)
  std::string path;    // absolute; where to look for it
  bool stale = false;  // may lack writes; never read until repaired
  std::string why;     // one sentence, for `holdfast status`
  // In a single directory: the file system's numbers of the nodes on which the member alone lies; empty where they are not known.
  std::vector<uint32_t> nodes = {};
  bool operator==(const ManifestMember&) const = default;
};

// What the user's path looked like when Holdfast last left it: a path that was edited or replaced is recognised.
struct PathState {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t change_ns = 0;
  bool known() const { return inode != 0; }
  bool operator==(const PathState&) const = default;
};

// Which files a checkpoint has, where their names do not say it: of the rank that wrote them, or all. docs/decisions/0040
struct Roll {
  struct File {
    std::string path;
    uint32_t number = 1;  // of the version that there was, and of what it counts in its node's order: Version
    uint64_t written = 0;
    bool operator==(const File&) const = default;
  };
  bool of_all = false;
  std::vector<File> files;
  bool operator==(const Roll&) const = default;
};

// Which file of which checkpoint this is a version of. Such a file was written once, this manifest of it last, and never changes.
struct Version {
  std::string run;    // of the job, and of those that went on with it (16 hex digits)
  Attempt attempt;    // of the run
  uint64_t step = 0;  // the checkpoint
  uint32_t rank = 0, ranks = 1;
  uint32_t number = 1;   // grows with each time that the file is written anew in this attempt
  std::string file;      // the user's path
  uint64_t written = 0;  // grows with each file that its node writes in this attempt; 0: not known
  uint32_t turn = 0;     // grows with each file of another step than the last that its rank writes in this attempt; 0: not known
  // Of a checkpoint that is whole when rolls say what belongs to it: how many ranks have to say so, and which one wrote this. 0: it is whole by its places.
  uint32_t writers = 0, writer = 0;
  std::string stem = {};          // of a file without a place of its own (its rank is `ranks`): its path without the step
  std::optional<Roll> roll = {};  // this is one, and no file of the user's
  uint32_t times = 0;             // that it was closed in this turn of its rank, with this close; 0: not known
  uint32_t fewest = 0;            // times that a file before it in its place was closed in this attempt, when this one was begun; 0: not known
  // Of no checkpoint: the file is protected by itself (checkpoint/singles.hpp).
  bool is_single() const { return ranks == 0 && writers == 0; }
  bool operator==(const Version&) const = default;
};

// A file of a pack (pack.hpp), by its place in the bytes that they share.
struct Packed {
  Version version;
  uint64_t offset = 0, bytes = 0;
  uint32_t mode = 0644;
  bool operator==(const Packed&) const = default;
};

struct Manifest {
  std::string file_id;    // 32 hex digits
  std::string set_id;     // of the target set; empty for a single directory
  std::string path;       // the user's absolute path
  std::string directory;  // the file's directory on each target, "<name>-<8 hex digits>"; empty for a single directory
  Geometry geometry;
  uint64_t epoch = 0;                      // grows with every write of the manifest
  uint64_t settled_epoch = 0;              // the last epoch known to be durable on all members but those then marked stale
  uint64_t size = 0;                       // logical bytes, as of the last sync
  uint64_t rows = 0;                       // rows 0..rows-1 may have records
  uint64_t next_generation = 1;            // the generation that the next writer gets
  std::vector<uint64_t> open_generations;  // writers that have not synced since: their records are not synced data
  std::vector<std::string> journals;       // committed and perhaps not yet folded in: "<generation>.<rank>"
  // The opener that may write whole fresh rows without the file's lock; 0: nobody may (docs/coherence.md). While it lives, the journals of
  // others stay where they are.
  uint64_t lone = 0;
  // A change of size that has still to be made in the objects: they are cut to this many bytes before anything else is written.
  std::optional<uint64_t> cut_to = {};
  std::vector<ManifestMember> members;
  PathState path_state;
  uint32_t mode = 0644;                 // permission bits for what is created for this file
  bool pool = false;                    // its members are directories of a pool: they are known by their uuids alone, and no marker names the others
  std::string job = {};                 // of `holdfast run`, that has written this or one before it last (16 hex digits); empty: not known
  std::optional<Version> version = {};  // it has no path of the user's, no sidecar, no journal, and no other manifest than this one
  std::vector<Packed> pack = {};        // what it holds, where it is a pack; `version` is that of its first file, less what that lists
  // Never stored: this is a file of that pack, at that offset. file_in() of pack.hpp makes it.
  std::shared_ptr<const Manifest> within = {};
  uint64_t offset_within = 0;
  bool operator==(const Manifest&) const = default;

  // One copy of the manifest is enough to know the whole file: none was before it and none comes after it.
  bool is_final() const { return version.has_value(); }
  // A record of this generation was made durable by a sync.
  bool is_synced(uint64_t generation) const;
  // Nothing was ever made durable: a target without a copy, and without data, has missed nothing.
  bool never_synced() const { return settled_epoch == 0 && size == 0 && rows == 0 && journals.empty(); }
};

// A member's reason (`why`) is cut after 512 bytes; all else comes back as it was.
std::string encode(const Manifest& manifest);
// Kind::corrupt for truncated, altered or senseless text; Kind::version for a newer format, with the mend.
Result<Manifest> decode(ByteView text);

// A copy of a manifest, and the uuid of the member on which it lies (empty for the sidecar's).
struct ManifestCopy {
  const Manifest* manifest;
  std::string_view holder;
};
// The newest of them; null where there are none. Two writers may leave copies of one epoch, if the second could not reach what the first had written
// to before it was killed. Those on members that another of that epoch calls stale, or has no more, are passed over.
const Manifest* newest_of(std::span<const ManifestCopy> copies);
// Whether a manifest calls the member with this uuid stale, or knows no such member. False for an empty one.
bool disowns(const Manifest& manifest, std::string_view holder);

// 64 bits of the file id (XXH3 of its 32 digits), as the checksums' key.
uint64_t file_key(const std::string& file_id);
// "node 3", "nodes 3, 4"; empty where there are none.
std::string name_of_nodes(const std::vector<uint32_t>& nodes);
std::string random_id();  // 32 hex digits from the kernel

}  // namespace holdfast::layout
