// One local file becomes a version in the pool, and a version a local file again.
#pragma once
#include <functional>
#include <set>
#include <string>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/versions.hpp"
#include "checkpoint/choice.hpp"
#include "checkpoint/local.hpp"
#include "engine/maintenance.hpp"

namespace holdfast::checkpoint {

struct ProtectedNow {
  int lost_members = 0;  // of a degraded version
};
// "/data/ck.5.0: protected, but 1 of its targets is lost"; where the scheme tolerates no `more` losses it says that, too.
std::string degraded(const std::string& file, int lost, bool no_more = false);
// The file at `path` as a version of node `own`. What was written of one that fails is removed. `has_names`: asked first where the local file has several
// names, one of which may be protected already (moved.hpp). Not ok: it is to be coded.
using HasNames = std::function<Result<ProtectedNow>()>;
Result<ProtectedNow> protect(const std::string& path, const layout::Version& version, const std::string& own, const Settings& settings,
                             const HasNames& has_names = {});
// A roll (roll.hpp), which has no content. Kind::invalid where it lists more files than a manifest has room for.
Result<ProtectedNow> protect_roll(const layout::Version& version, const std::string& own, const Settings& settings);

// A small file, or a roll, on its way into a pack.
struct ToPack {
  layout::Version version;
  std::string path;  // of the local file; of a roll it does not count
  bool is_roll() const { return version.roll.has_value(); }
};
inline constexpr size_t most_packed_files = 1024;
inline constexpr uint64_t most_packed_bytes = 64 << 20;  // of content
inline constexpr uint64_t most_index_bytes = 384 << 10;  // of a manifest has room for it
// About what it takes there.
uint64_t index_bytes_of(const layout::Version& version);
// Several files of one checkpoint as one protected file. All of them, or none.
Result<ProtectedNow> protect_together(const std::vector<ToPack>& files, const std::string& own, const Settings& settings);

// A version that lacks parts is written again as a whole one, by its own scheme, over those of `nodes` that answer. The old one goes then: it can be
// read all the while. A node that fails on the way, or has no room, is left out as long as there are enough others. Not ok, and all is as before,
// where the nodes are too few. Of a file of a pack all of the pack is meant.
Status renew(const layout::Manifest& manifest, const std::vector<std::string>& nodes, const Settings& settings);

// The version's content, checked, in a new file at `path`, or `over` the bytes of one of that size. `progress`: false ends it.
Status fetch(const layout::Manifest& manifest, const std::string& path, const Settings& settings, const engine::Progress& progress = {},
             bool over = false);

// `damaged`: those that count as unreadable, by their ids.
std::vector<Protected> protected_of(const std::vector<catalog::FoundVersion>& found, const std::set<std::string>& damaged = {});

}  // namespace holdfast::checkpoint
