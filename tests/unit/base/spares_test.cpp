#include "base/spare_numbers.hpp"

#include <gtest/gtest.h>

namespace holdfast::raw {
namespace {

int waits(Spares& spares) {
  int tries = 0;
  while (spares.wait_for_one(tries)) ++tries;
  return tries;
}

// A process that may have too few descriptors at all waited a second for each call, and more than a minute for a file on six nodes.
TEST(Spares, who_waits_after_others_have_waited_in_vain_gives_up_soon) {
  Spares spares;
  spares.wanted = 1;
  EXPECT_GT(waits(spares), 100);
  EXPECT_LE(waits(spares), 10);
  EXPECT_LE(waits(spares), 10);

  spares.wanted = 2;
  spares.keep(raw::openat(AT_FDCWD, "/", O_PATH | O_CLOEXEC));
  EXPECT_GT(waits(spares), 100) << "one has come back, so others may";
  ASSERT_TRUE(spares.give_up());
}

TEST(Spares, nobody_waits_where_none_is_away) {
  Spares spares;
  EXPECT_EQ(waits(spares), 0);
}

}  // namespace
}  // namespace holdfast::raw
