// What `auto` goes by where teams have nodes of their own: how fast calls have been that were shared out, and others.
#include <gtest/gtest.h>

#include "file/coordinated/paces.hpp"
#include "file/coordinated/protocol.hpp"

namespace holdfast::file::test {
namespace {

constexpr uint64_t piece = 1 << 20, a_while_ns = 1000000;

// So many calls of a program: how many of them were shared out.
int shared_of(Paces& paces, Work work, int calls, uint64_t bytes, double gain) {
  int shared = 0;
  for (int call = 0; call < calls; ++call) {
    const bool apart = paces.shares(work, bytes);
    shared += apart;
    paces.took(work, apart, bytes, uint64_t(double(a_while_ns) / (apart ? gain : 1)));
  }
  return shared;
}

TEST(Paces, the_faster_way_is_found_and_the_other_one_tried_again_seldom) {
  Paces paces;
  EXPECT_EQ(shared_of(paces, Work::write, 60, piece, 2), 60 - 2);
  EXPECT_EQ(shared_of(paces, Work::read, 60, piece, 0.5), 2);
  EXPECT_EQ(shared_of(paces, Work::write, 1000, piece, 2), 1000 - 3);
  EXPECT_EQ(shared_of(paces, Work::read, 1000, piece, 0.5), 3);
}

TEST(Paces, a_first_read_is_shared_out_and_a_first_write_is_not) {
  Paces paces;
  EXPECT_TRUE(paces.shares(Work::read, piece));
  EXPECT_FALSE(paces.shares(Work::write, piece));
}

TEST(Paces, a_new_size_begins_with_what_the_nearest_has_shown) {
  Paces slow, fast;
  shared_of(slow, Work::write, 20, least_shared, 0.5);
  shared_of(fast, Work::write, 20, least_shared, 3);
  for (const uint64_t bytes : {4 * least_shared, 1000 * piece}) {
    EXPECT_EQ(shared_of(slow, Work::write, 20, bytes, 0.5), 0);
    EXPECT_EQ(shared_of(fast, Work::write, 20, bytes, 3), 20);
  }
}

TEST(Paces, what_has_become_faster_is_found_by_the_next_trials) {
  Paces paces;
  shared_of(paces, Work::write, 100, piece, 0.5);
  EXPECT_GT(shared_of(paces, Work::write, 2000, piece, 4), 1000);
}

TEST(Paces, file_systems_have_paces_of_their_own) {
  shared_of(Paces::of(1), Work::write, 20, piece, 2);
  EXPECT_TRUE(Paces::of(1).shares(Work::write, piece));
  EXPECT_FALSE(Paces::of(2).shares(Work::write, piece));
}

}  // namespace
}  // namespace holdfast::file::test
