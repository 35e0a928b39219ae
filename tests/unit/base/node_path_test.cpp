#include "base/node_path.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

// `repair --replace n3:/d/=...` did not find the member n3:/d/, whose slash it had taken off on one side.
TEST(NodePath, has_one_spelling) {
  EXPECT_EQ(plain_address("n3:/nvme/me/"), "n3:/nvme/me");
  EXPECT_EQ(plain_address("n3://nvme/./me/."), "n3:/nvme/me");
  EXPECT_EQ(plain_address("n3:/"), "n3:/");
  EXPECT_EQ(plain_address("n3:/a/../b"), "n3:/a/../b") << "where a leads to only n3 knows";
  EXPECT_EQ(plain_address("n3:/...a/.b/"), "n3:/...a/.b");
  EXPECT_EQ(plain_address("./here/"), "./here/");
  EXPECT_EQ(plain_address("/here//x"), "/here//x");
}

}  // namespace
}  // namespace holdfast
