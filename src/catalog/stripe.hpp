// Asking a file system that stripes for a layout, and reading back what it gave: CephFS, Lustre, OrangeFS.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::catalog {

struct StripeLayout {
  uint64_t unit_bytes = 0;
  int nodes = 1;        // over how many nodes the stripes go
  bool hashed = false;  // the nodes are chosen by a hash for each stripe by itself: two neighbours may share one
  // On how many distinct nodes that many neighbouring stripes lie for sure.
  int distinct_nodes() const { return hashed ? 1 : nodes; }
  bool operator==(const StripeLayout&) const = default;
};

// "stripe_unit=4194304 stripe_count=2 object_size=4194304 pool=cephfs_data". Stripes are objects, and on which OSD an object lies is
// decided by a hash of its name (CRUSH): distinct objects are no distinct nodes. Nodes are kept apart by pools there.
std::optional<StripeLayout> parse_ceph_layout(std::string_view text);
// The binary lov_user_md of versions 1 and 3, little-endian: u32 magic, ..., u32 stripe size at 24, u16 stripe count at 28.
std::optional<StripeLayout> parse_lustre_layout(std::string_view blob);
// The decimal value of user.pvfs2.num_dfiles.
std::optional<StripeLayout> parse_orangefs_layout(std::string_view text);

// Asks for the layout on an empty file (what cannot be asked for is left as it is), then reads it back. An unknown
// layout is one node.
StripeLayout request_stripes(const std::string& empty_file, uint64_t unit_bytes, int nodes);

}  // namespace holdfast::catalog
