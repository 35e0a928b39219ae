// Which parts of files ranks hold locks of, as the hub has it.
#include <gtest/gtest.h>

#include "redundant/membership/lock_holders.hpp"

namespace holdfast::redundant {
namespace {

constexpr uint64_t file = 7, other_file = 8, first = 0, second = 1;

LockedPart part(LockedPart::What what, uint64_t begin, uint64_t end, bool exclusive = true, uint64_t kind = 0) {
  return {what, kind, begin, end, exclusive ? 1u : 0u};
}
constexpr auto takes = LockedPart::takes, takes_over = LockedPart::takes_over, gives_up = LockedPart::gives_up;

TEST(LockHolders, forbid_what_the_kernel_would_if_their_leader_lived) {
  LockHolders locks;
  EXPECT_TRUE(locks.call(file, first, part(takes, 0, 10)));
  EXPECT_FALSE(locks.call(file, second, part(takes, 9, 12)));
  EXPECT_FALSE(locks.call(file, second, part(takes, 0, 1, false)));
  EXPECT_TRUE(locks.call(file, second, part(takes, 10, 20)));
  EXPECT_TRUE(locks.call(file, second, part(takes, 0, 10, true, 1))) << "flock knows nothing of fcntl";
  EXPECT_TRUE(locks.call(other_file, second, part(takes, 0, 10)));
  EXPECT_TRUE(locks.call(file, first, part(takes, 0, 10))) << "its next leader";
}

TEST(LockHolders, share_what_is_only_read) {
  LockHolders locks;
  EXPECT_TRUE(locks.call(file, first, part(takes, 0, 10, false)));
  EXPECT_TRUE(locks.call(file, second, part(takes, 0, 10, false)));
  EXPECT_FALSE(locks.call(file, second, part(takes, 0, 10))) << "not an upgrade";
  EXPECT_TRUE(locks.call(file, first, part(gives_up, 0, 10)));
  EXPECT_TRUE(locks.call(file, second, part(takes, 0, 10)));
  EXPECT_FALSE(locks.call(file, first, part(takes, 0, 10, false)));
}

TEST(LockHolders, give_up_the_middle_of_a_part) {
  LockHolders locks;
  EXPECT_TRUE(locks.call(file, first, part(takes, 0, 30)));
  EXPECT_TRUE(locks.call(file, first, part(gives_up, 10, 20)));
  EXPECT_TRUE(locks.call(file, second, part(takes, 10, 20)));
  EXPECT_FALSE(locks.call(file, second, part(takes, 9, 20)));
  EXPECT_FALSE(locks.call(file, second, part(takes, 10, 21)));
}

TEST(LockHolders, lose_what_they_do_not_come_back_to) {
  LockHolders locks;
  EXPECT_TRUE(locks.call(file, first, part(takes, 0, 30)));
  EXPECT_TRUE(locks.call(file, second, part(takes_over, 0, 10)));
  EXPECT_FALSE(locks.call(file, first, part(takes, 0, 10)));
  locks.gone(int(second));
  EXPECT_TRUE(locks.call(file, first, part(takes, 0, 10)));
}

}  // namespace
}  // namespace holdfast::redundant
