#include "catalog/stripe.hpp"

#include <gtest/gtest.h>

namespace holdfast::catalog {
namespace {

TEST(Stripe, CephLayoutsAreRead) {
  auto layout = parse_ceph_layout("stripe_unit=65536 stripe_count=4 object_size=4194304 pool=cephfs_data");
  ASSERT_TRUE(layout);
  EXPECT_EQ(*layout, (StripeLayout{65536, 4, true}));
  EXPECT_EQ(layout->distinct_nodes(), 1);  // objects are placed by a hash
  EXPECT_FALSE(parse_ceph_layout("stripe_unit=65536"));
  EXPECT_FALSE(parse_ceph_layout("stripe_unit=x stripe_count=4"));
  EXPECT_FALSE(parse_ceph_layout(""));
}

TEST(Stripe, LustreLayoutsAreRead) {
  std::string blob(32 + 4 * 24, '\0');
  const uint32_t magic = 0x0BD10BD0, unit = 1 << 20;
  const uint16_t count = 4;
  blob.replace(0, 4, reinterpret_cast<const char*>(&magic), 4);
  blob.replace(24, 4, reinterpret_cast<const char*>(&unit), 4);
  blob.replace(28, 2, reinterpret_cast<const char*>(&count), 2);
  auto layout = parse_lustre_layout(blob);
  ASSERT_TRUE(layout);
  EXPECT_EQ(*layout, (StripeLayout{1 << 20, 4}));
  EXPECT_EQ(layout->distinct_nodes(), 4);
  EXPECT_FALSE(parse_lustre_layout(blob.substr(0, 20)));
  EXPECT_FALSE(parse_lustre_layout(std::string(64, 'x')));
}

TEST(Stripe, OrangeFsNumbersAreRead) {
  EXPECT_EQ(parse_orangefs_layout("6")->nodes, 6);
  EXPECT_FALSE(parse_orangefs_layout("0"));
  EXPECT_FALSE(parse_orangefs_layout("many"));
}

// Ordinary file systems store anything under user.*; that must not pass for striping.
TEST(Stripe, APlainFileSystemIsOneNode) {
  EXPECT_EQ(request_stripes("/tmp", 65536, 4).nodes, 1);
}

}  // namespace
}  // namespace holdfast::catalog
