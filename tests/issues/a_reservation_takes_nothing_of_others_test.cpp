// Who reserved space (fallocate, MPI_File_preallocate) in a file that another one had made longer since set its size to the end of the
// reservation: what the other had synced behind it was gone, without a word. And a hole was punched only as far as the puncher knew the file.
#include <linux/falloc.h>

#include "unit/engine/scene.hpp"

namespace holdfast::sim {
namespace {

constexpr uint64_t known = 1000, grown = 300000;

class Reservation : public ::testing::TestWithParam<const char*> {
 protected:
  Reservation() {
    Opener file(world, true);
    file.write(0, known, 1);
    file.close();
  }
  void grow_by_another() {
    Opener other(world);
    other.write(0, grown, 2);
    other.close();
  }
  uint64_t size_anew() {
    Opener reader(world, false, false);
    EXPECT_TRUE(reader) << reader.status.sentence();
    return *reader->size();
  }
  World world{GetParam()};
};

TEST_P(Reservation, takes_nothing_of_what_another_has_synced) {
  Opener first(world);
  grow_by_another();
  expect_ok(first->allocate(0, {0, 4096}));
  EXPECT_EQ(*first->size(), grown);
  first.close();
  EXPECT_EQ(size_anew(), grown);
  EXPECT_TRUE(all_are(read_anew(world, 0, grown), 2));
}

TEST_P(Reservation, of_all_ranks_takes_nothing_either) {
  Opener first(world);
  grow_by_another();
  expect_ok(first->lengthen(4096));
  first.close();
  EXPECT_EQ(size_anew(), grown);
  EXPECT_TRUE(all_are(read_anew(world, 0, grown), 2));
}

// The lone opener's whole rows lie in place before it syncs them.
TEST_P(Reservation, takes_nothing_of_what_the_lone_opener_is_writing) {
  Opener lone(world), second(world);
  lone.write(0, grown, 2);
  expect_ok(second->allocate(0, {0, 4096}));
  second.close();
  lone.close();
  EXPECT_EQ(size_anew(), grown);
  EXPECT_TRUE(all_are(read_anew(world, 0, grown), 2));
}

TEST_P(Reservation, makes_a_file_longer) {
  Opener first(world);
  expect_ok(first->allocate(0, {0, grown}));
  EXPECT_EQ(size_anew(), grown);
  expect_ok(first->lengthen(2 * grown));
  first.close();
  EXPECT_EQ(size_anew(), 2 * grown);
  EXPECT_TRUE(all_are(read_anew(world, 0, known), 1));
  EXPECT_TRUE(all_are(read_anew(world, known, 2 * grown - known), 0));
}

TEST_P(Reservation, makes_a_file_longer_that_another_has_cut) {
  Opener first(world);
  {
    Opener other(world);
    other.set_size(10);
    other.close();
  }
  expect_ok(first->allocate(0, {0, known}));
  first.close();
  EXPECT_EQ(size_anew(), known);
  EXPECT_TRUE(all_are(read_anew(world, 0, 10), 1));
  EXPECT_TRUE(all_are(read_anew(world, 10, known - 10), 0));
}

TEST_P(Reservation, a_hole_is_punched_also_into_what_another_has_synced) {
  Opener first(world);
  grow_by_another();
  expect_ok(first->allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, {500, grown}));
  first.close();
  EXPECT_EQ(size_anew(), grown);
  EXPECT_TRUE(all_are(read_anew(world, 0, 500), 2));
  EXPECT_TRUE(all_are(read_anew(world, 500, grown - 500), 0));
}

INSTANTIATE_TEST_SUITE_P(Issues, Reservation, ::testing::Values("rs:2+1", "mirror:2"));

}  // namespace
}  // namespace holdfast::sim
