// Who had a file open that another one then cut got an error from reads and writes behind the new end: rows there have no record any more
// on any target, which was taken for a loss of all of them. A reader may see the file as it was or as it is, and a writer may write.
#include "unit/engine/scene.hpp"

namespace holdfast::sim {
namespace {

constexpr uint64_t before = 300000, cut = 100;

class CutByAnother : public ::testing::TestWithParam<const char*> {
 protected:
  CutByAnother() {
    Opener file(world, true);
    file.write(0, before, 1);
    file.close();
  }
  void cut_by_another(uint64_t end = cut) {
    Opener other(world);
    other.set_size(end);
    other.close();
  }
  // The file as it was, or as it is: not zeros in the place of what was cut.
  void expect_old_or_new(Opener& reader) {
    const Bytes behind = reader.read(before - 1000, 1000), all = reader.read(0, before);
    EXPECT_TRUE(behind.empty() || behind.size() == 1000) << behind.size();
    EXPECT_TRUE(all_are(behind, 1));
    EXPECT_TRUE(all.size() == cut || all.size() == before) << all.size();
    EXPECT_TRUE(all_are(all, 1));
  }
  World world{GetParam()};
};

TEST_P(CutByAnother, is_read_as_it_was_or_is_by_a_reader) {
  Opener reader(world, false, false);
  cut_by_another();
  expect_old_or_new(reader);
}

TEST_P(CutByAnother, is_read_so_by_a_reader_who_has_seen_some_of_it) {
  Opener reader(world, false, false);
  (void)reader.read(0, 10);
  (void)reader.read(before - 10, 10);
  cut_by_another();
  expect_old_or_new(reader);
}

TEST_P(CutByAnother, is_read_so_by_a_writer) {
  Opener writer(world);
  cut_by_another();
  expect_old_or_new(writer);
  writer.close();
}

TEST_P(CutByAnother, is_written_behind_its_new_end) {
  Opener writer(world);
  cut_by_another();
  writer.write(before - 1000, 10, 2);
  writer.close();
  EXPECT_TRUE(all_are(read_anew(world, 0, cut), 1));
  EXPECT_TRUE(all_are(read_anew(world, cut, before - 1000 - cut), 0));
  const Bytes last = read_anew(world, before - 1000, 1000);
  EXPECT_EQ(last.size(), 10u);
  EXPECT_TRUE(all_are(last, 2));
}

TEST_P(CutByAnother, is_written_there_with_a_target_lost) {
  Opener writer(world);
  cut_by_another();
  world.gate->fail(0, Kind::io);
  writer.write(before - 1000, 10, 2);
  writer.close();
  const Bytes last = read_anew(world, before - 1000, 1000);
  EXPECT_EQ(last.size(), 10u);
  EXPECT_TRUE(all_are(last, 2));
}

// The end within a row whose record is known: that row's bytes change, and those behind the end are no zeros of the file.
TEST_P(CutByAnother, ends_within_a_row_that_is_known) {
  Opener reader(world, false, false);
  (void)reader.read(0, 10);
  cut_by_another(50);
  const Bytes seen = reader.read(0, 200);
  EXPECT_TRUE(seen.size() == 50 || seen.size() == 200) << seen.size();
  EXPECT_TRUE(all_are(seen, 1));
}

INSTANTIATE_TEST_SUITE_P(Issues, CutByAnother, ::testing::Values("rs:2+1", "mirror:2"));

}  // namespace
}  // namespace holdfast::sim
