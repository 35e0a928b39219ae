// An opener that had seen a file's end before another one cut the file wrote that end down again at its own close, also where it had written
// nothing; and it went on telling the old size after a sync.
#include "unit/engine/scene.hpp"

namespace holdfast::sim {
namespace {

constexpr uint64_t before = 50000, cut = 100;

class SizeCut : public ::testing::Test {
 protected:
  SizeCut() {
    Opener file(world, true);
    file.write(0, before, 1);
    file.close();
  }
  void cut_by_another() {
    Opener other(world);
    other.set_size(cut);
    other.close();
  }
  uint64_t size_anew() {
    Opener reader(world, false, false);
    EXPECT_TRUE(reader) << reader.status.sentence();
    return *reader->size();
  }
  World world{"rs:2+1"};
};

TEST_F(SizeCut, beside_an_opener_that_writes_nothing) {
  Opener first(world);
  cut_by_another();
  first.close();
  EXPECT_EQ(size_anew(), cut);
}

TEST_F(SizeCut, beside_an_opener_that_writes_before_the_new_end) {
  Opener first(world);
  cut_by_another();
  first.write(0, 10, 2);
  first.close();
  EXPECT_EQ(size_anew(), cut);
}

TEST_F(SizeCut, is_seen_after_a_sync) {
  Opener writer(world), reader(world, false, false);
  cut_by_another();
  writer.sync();
  reader.sync();
  EXPECT_EQ(*writer->size(), cut);
  EXPECT_EQ(*reader->size(), cut);
  EXPECT_EQ(reader.read(0, before).size(), cut);
}

TEST_F(SizeCut, is_seen_from_set_atomicity_on) {
  Opener first(world);
  cut_by_another();
  expect_ok(first->set_atomic(true));
  EXPECT_EQ(*first->size(), cut);
}

// What an opener has written and not committed it has written: the file reaches as far again.
TEST_F(SizeCut, gives_way_to_what_was_written_and_not_synced_before) {
  Opener first(world);
  first.write(before, 10, 2);
  cut_by_another();
  EXPECT_EQ(*first->size(), before + 10);
  first.close();
  EXPECT_EQ(size_anew(), before + 10);
  EXPECT_TRUE(all_are(read_anew(world, cut, before - cut), 0));
  EXPECT_TRUE(all_are(read_anew(world, before, 10), 2));
}

TEST_F(SizeCut, is_where_the_next_append_goes) {
  Opener first(world);
  const Bytes line(10, std::byte(3));
  ASSERT_TRUE(first->append(line, true).ok());
  cut_by_another();
  const auto at = first->append(line, true);
  ASSERT_TRUE(at.ok()) << at.status().sentence();
  EXPECT_EQ(*at, cut);
  first.close();
  EXPECT_EQ(size_anew(), cut + 10);
}

// In atomic mode a write that has returned counts for everybody, its end as well.
TEST_F(SizeCut, or_grown_is_seen_by_who_is_atomic) {
  Opener first(world), second(world);
  expect_ok(first->set_atomic(true));
  expect_ok(second->set_atomic(true));
  first.write(before, 10, 2);
  EXPECT_EQ(*second->size(), before + 10);
  EXPECT_EQ(*second->agreed_size(), before + 10);
}

}  // namespace
}  // namespace holdfast::sim
