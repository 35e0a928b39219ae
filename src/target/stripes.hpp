// How a file system that stripes is asked for a layout and says which one it gave: CephFS, Lustre, OrangeFS. Only the bytes of the
// attributes; directory_stripes.cpp has the system calls.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::target {

inline constexpr int any_node = -1;

struct StripeWish {
  uint64_t unit_bytes = 0;  // 0: the file system's own
  int count = 1;            // over how many nodes; 0: as many as the file system takes by itself
  int start = any_node;     // the node of stripe 0, by the file system's own number
  bool operator==(const StripeWish&) const = default;
};

struct Stripes {
  uint64_t unit_bytes = 0;
  int count = 1;                // over how many nodes the stripes go
  bool hashed = false;          // the nodes are chosen by a hash for each stripe by itself: two neighbours may share one
  std::vector<uint32_t> nodes;  // the node of stripe 0, 1, ...: `count` of them, or none where the file system does not say
  // On how many distinct nodes that many neighbouring stripes lie for sure.
  int distinct_nodes() const;
  bool operator==(const Stripes&) const = default;
};

// "stripe_unit=4194304 stripe_count=2 object_size=4194304 pool=cephfs_data". Stripes are objects, and on which OSD an object lies is
// decided by a hash of its name (CRUSH): distinct objects are no distinct nodes. Nodes are kept apart by pools there.
std::optional<Stripes> parse_ceph_layout(std::string_view text);

// The value of lustre.lov, little-endian: lov_user_md of versions 1 and 3 (u32 magic, u32 pattern, 16 bytes of object id, u32 stripe
// size, u16 stripe count, u16 layout generation, in version 3 a pool's name of 16 bytes, then 24 bytes for each stripe of which the last
// four are the number of its OST), or a composite one (version 0x0BD60BD0) of a single component that is the whole file. What has
// other patterns than plain striping, more components or no objects is unknown.
std::optional<Stripes> parse_lustre_layout(std::string_view blob);
// What setxattr takes. There a start of 0 means "any", so that OST 0 is asked for by a list of all OSTs (magic 0x0BD50BD0).
std::string encode_lustre_wish(const StripeWish& wish);

// The decimal value of user.pvfs2.num_dfiles.
std::optional<Stripes> parse_orangefs_layout(std::string_view text);

}  // namespace holdfast::target
