// What ranks say of files that they write together, each by an open of its own.
#include <gtest/gtest.h>

#include "catalog/user_files.hpp"
#include "checkpoint/parts.hpp"
#include "unit/target/directory_fixture.hpp"

namespace holdfast::checkpoint {
namespace {

LocalName file_of(uint64_t step, uint32_t number = 1) { return {.step = step, .number = number, .file = "/ck/ck." + std::to_string(step)}; }

class PartsOfNode : public ::testing::Test {
 protected:
  PartsOfNode() { EXPECT_TRUE(files_.make_all().ok()); }
  const target::TemporaryDirectory scratch_;
  const LocalFiles files_{scratch_.path(), "00000000000000ab", 1};
  const Parts parts_{files_};
};

TEST(PartNames, are_read_as_they_were_written) {
  for (const Taking taking : {Taking::opened, Taking::writes, Taking::written, Taking::done})
    for (const Part& part : {Part{"00ff-3", 7, 2, taking}, Part{"00ff-3", 7, {}, taking}, Part{"", 7, 0, taking}})
      EXPECT_EQ(decode_part(encode(part)), part) << encode(part);
  for (const char* const other : {"", "x", "a.1.2.over", "a.x.2.in", "a.1.x.in", "a.1.2.3.in", "a.1.-2.in"})
    EXPECT_FALSE(decode_part(other)) << other;
}

TEST_F(PartsOfNode, a_rank_is_done_with_a_file_when_it_begins_another_checkpoint) {
  EXPECT_FALSE(parts_.has_taken(file_of(1), 0));
  ASSERT_TRUE(parts_.take(file_of(1), 0, true).ok());
  ASSERT_TRUE(parts_.take(file_of(1), 1, true).ok());
  EXPECT_TRUE(parts_.has_taken(file_of(1), 0));
  EXPECT_TRUE(parts_.any_at_work(file_of(1)));
  ASSERT_TRUE(parts_.take(file_of(2), 0, true).ok());
  EXPECT_TRUE(parts_.any_at_work(file_of(1))) << "the other rank is not done with it";
  parts_.begins(3, 1);
  EXPECT_FALSE(parts_.any_at_work(file_of(1)));
  EXPECT_TRUE(parts_.has_taken(file_of(1), 1));
  ASSERT_TRUE(parts_.take(file_of(1), 1, true).ok());
  EXPECT_TRUE(parts_.any_at_work(file_of(1))) << "it has come back";
}

TEST_F(PartsOfNode, a_rank_has_written_until_another_version_is_begun) {
  const auto names = [&] { return *catalog::list_directory(files_.directory() + "/" + parts_directory); };
  ASSERT_TRUE(parts_.take(file_of(1), 0, true).ok());
  EXPECT_FALSE(parts_.has_written(file_of(1), 0));
  parts_.closes(file_of(1), 0);
  EXPECT_FALSE(parts_.has_written(file_of(1), 0)) << "it has written nothing";
  parts_.writes(file_of(1), 0);
  for (int times = 0; times < 2; ++times) {
    EXPECT_TRUE(parts_.has_written(file_of(1), 0));
    EXPECT_EQ(names().size(), 1u);
    parts_.closes(file_of(1), 0);
    ASSERT_TRUE(parts_.take(file_of(1), 0, true).ok());
  }
  parts_.begins(2, 0);
  ASSERT_TRUE(parts_.take(file_of(1), 0, true).ok()) << "it has come back";
  EXPECT_TRUE(parts_.has_written(file_of(1), 0));
  EXPECT_TRUE(parts_.any_at_work(file_of(1)));
  EXPECT_FALSE(parts_.has_written(file_of(1, 2), 0));
}

TEST_F(PartsOfNode, a_later_version_of_a_slot_ends_the_one_before) {
  ASSERT_TRUE(parts_.take(file_of(1, 1), 0, true).ok());
  ASSERT_TRUE(parts_.take(file_of(1, 2), 0, true).ok());
  EXPECT_FALSE(parts_.any_at_work(file_of(1, 1)));
  EXPECT_TRUE(parts_.any_at_work(file_of(1, 2)));
}

TEST_F(PartsOfNode, where_a_file_completes_checkpoints_nothing_else_does) {
  ASSERT_TRUE(parts_.take(file_of(1), 0, false).ok());
  ASSERT_TRUE(parts_.take(file_of(2), 0, false).ok());
  EXPECT_TRUE(parts_.any_at_work(file_of(1)));
  ASSERT_TRUE(parts_.completed(file_of(1), {}).ok());
  EXPECT_FALSE(parts_.any_at_work(file_of(1)));
  ASSERT_TRUE(parts_.completed(file_of(2), 0).ok());
  EXPECT_FALSE(parts_.any_at_work(file_of(2)));
}

TEST_F(PartsOfNode, a_rank_that_writes_nothing_may_say_so_until_it_does) {
  const auto names = [&] { return *catalog::list_directory(files_.directory() + "/" + parts_directory); };
  ASSERT_TRUE(parts_.complete(1, 0).ok());
  EXPECT_EQ(names(), std::vector<std::string>{"any.1.0.done"});
  ASSERT_TRUE(parts_.take(file_of(1), 0, true).ok());
  EXPECT_EQ(names().size(), 1u);
  EXPECT_TRUE(parts_.any_at_work(file_of(1)));
  ASSERT_TRUE(parts_.complete(1, 0).ok());
  EXPECT_FALSE(parts_.any_at_work(file_of(1)));
  EXPECT_EQ(names().size(), 1u);
}

}  // namespace
}  // namespace holdfast::checkpoint
