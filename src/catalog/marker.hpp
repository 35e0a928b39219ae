// The marker `holdfast-target.json` in each target directory: which set it belongs to and who else does, or that it is a pool's.
#pragma once
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace holdfast::catalog {

inline constexpr char marker_name[] = "holdfast-target.json";
inline constexpr char set_lock_name[] = ".holdfast-set.lock";
inline constexpr int marker_format = 1;
inline constexpr uint64_t max_marker_bytes = 1 << 18;

struct MarkerMember {
  std::string uuid;
  std::string path;
  bool operator==(const MarkerMember&) const = default;
};

struct Marker {
  std::string set_id;
  uint64_t epoch = 0;  // 0: the set is being made, and no file refers to it yet
  int index = 0;       // which member this directory is
  std::vector<MarkerMember> members;
  std::vector<std::string> former_paths;  // of members that were replaced: a job that still names them is understood
  const std::string& uuid() const { return members[size_t(index)].uuid; }
  bool operator==(const Marker&) const = default;
};

std::string encode(const Marker& marker);
// Kind::corrupt, Kind::version (a pool's is of a newer format). Any bytes whatever are survived.
Result<Marker> decode_marker(ByteView text);

// Of a directory that stands for itself. It knows of no other one, and a file's manifest alone says which of them the file is on. Whoever knows
// sets only takes it for a newer format and leaves it alone.
inline constexpr int pool_marker_format = 2;
struct PoolMarker {
  std::string pool_id;  // the pool in which it was made; says nothing of who else is in it
  std::string uuid;
  std::string node;  // whose directory it is; empty: not said
  bool operator==(const PoolMarker&) const = default;
};
std::string encode(const PoolMarker& marker);
Result<PoolMarker> decode_pool_marker(ByteView text);

}  // namespace holdfast::catalog
