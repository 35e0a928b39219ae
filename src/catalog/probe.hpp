// Opening target directories side by side, each through its own lane and within the deadline: what was found there.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "catalog/marker.hpp"
#include "layout/manifest.hpp"
#include "target/lane.hpp"
#include "target/target.hpp"

namespace holdfast::catalog {

// Environment::lane_for of the kernel's environment.
std::shared_ptr<target::Lane> lane_of_process(const std::string& directory, std::chrono::milliseconds deadline);
// For those who use lanes in handlers of fork, which are to be registered after this. Before a fork they run in the reverse order of their
// registration, in the child in its order.
void watch_forks();
// At the process's end and before an exec: what shares its descriptors and is in no call ends first (target/lane.hpp).
void end_idle_lanes();

struct Probe {
  std::string path;
  std::shared_ptr<target::Lane> lane;
  Status status;                           // why there is no target
  std::shared_ptr<target::Target> target;  // null when not reachable
  uint64_t device = 0, inode = 0;          // of a directory of this machine
  bool has_marker = false;
  std::optional<Marker> marker;              // where there is an intact one
  std::optional<PoolMarker> pool;            // where it is a pool's
  Status marker_status;                      // why there is no marker of a set
  std::string mended_marker;                 // the marker's text where a bit of it was flipped: to be put in its place (mend_marker)
  bool empty = false;                        // but for hidden entries and lost+found; only looked at where there is no marker
  std::optional<layout::Manifest> manifest;  // the copy at `<manifest_name>`, where asked for and intact
  Status manifest_status;

  bool reachable() const { return target != nullptr; }
  // Of the target found there, whether of a set or of a pool; empty where there is none.
  const std::string& uuid() const;
};

struct LookFor {
  bool marker = true;
  std::string manifest_name = {};     // is read on each target too, unless it is empty
  std::optional<uint32_t> mode = {};  // permission bits of what is made there
};
// Results are in the order of `directories`.
std::vector<Probe> probe_directories(const std::vector<std::string>& directories, const LookFor& what, uint64_t deadline_ms);
// The lock of a directory's marker, which is waited for, ten seconds long. One process at a time makes or changes a set or a pool.
Result<std::unique_ptr<target::Lock>> lock_directory(const Probe& probe);
// Puts the right text in the place of a marker that has a flipped bit, if it is still there. For who makes or opens sets and pools; whether it can be
// written or not, the marker is understood as before.
void mend_marker(const Probe& probe);
// Whether two that were found are one directory, whatever ways lead to it.
bool are_one_directory(const Probe& one, const Probe& other);
// The intact marker of the highest epoch of that set (of any set where `set_id` is empty); null where there is none.
const Marker* newest_marker(const std::vector<Probe>& probes, const std::string& set_id);
// Why the directory that was found at a member's place is not that member; `set_id` is a pool's too.
std::string why_not_member(const Probe& found, const std::string& set_id);

}  // namespace holdfast::catalog
