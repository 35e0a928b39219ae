// A node on which no rank was did not answer any more. What it had had of a checkpoint nobody knew, so none was completed from there on: by the file of --complete, or by the end
// of the job. Ranks that waited for that file waited for good.
#include "checkpoint/roll.hpp"
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class NodeWithoutRanks : public TwoRanks {
 protected:
  NodeWithoutRanks() : TwoRanks("/data/{step}/*.{rank}") {
    for (const uint64_t step : {1, 2})
      for (const uint32_t rank : {0, 1}) write_file(rank, "/data/" + std::to_string(step) + "/a." + std::to_string(rank));
  }
};

TEST_F(NodeWithoutRanks, is_not_asked_what_it_has_had) {
  EXPECT_EQ(whole(), std::vector<uint64_t>{1});
  for (const int without : {1, 3}) site.gate->fail(sim::Site::gate_number(without), Kind::timed_out);
  EXPECT_TRUE(roll_ended(run, settings, {}).empty());
  EXPECT_EQ(whole(), (std::vector<uint64_t>{1, 2}));
}

TEST_F(NodeWithoutRanks, is_none_of_which_nothing_is_known) {
  site.gate->fail(sim::Site::gate_number(2), Kind::timed_out);
  EXPECT_FALSE(roll_ended(run, settings, {}).empty());
  EXPECT_EQ(whole(), std::vector<uint64_t>{1});
}

TEST_F(NodeWithoutRanks, is_none_that_may_have_forgotten_names) {
  EXPECT_FALSE(roll_ended(run, settings, {settings.local[2]}).empty());
  EXPECT_TRUE(roll_ended(run, settings, {settings.local[3]}).empty());
  EXPECT_EQ(whole(), (std::vector<uint64_t>{1, 2}));
}

// The completing file's own roll is no rank's, though it says 0.
TEST_F(NodeWithoutRanks, is_none_that_has_a_rank_which_a_roll_of_all_seems_to_be_of) {
  run.attempt = 2;
  const Patterns patterns = *Patterns::parse({"/data/{step}/*"}, {"/data/{step}/DONE"});
  Settings completed = settings;
  completed.checkpoint = {"/data/{step}/*"}, completed.complete = {"/data/{step}/DONE"};
  const auto second = Front::make(completed, patterns, run, {1, 2, settings.local[2]});
  Protector protector(completed, run, settings.local[2], [](const std::string&) {});
  ASSERT_TRUE(protector.begin().ok());
  const auto write = [&](const std::string& path) {
    Status status;
    const int fd = second->open_to_write(*second->match(path), O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
    ASSERT_GE(fd, 0) << status.sentence();
    site.close(fd);
    second->closed(fd);
    protector.work(), protector.work();  // the file, and the roll that comes with it
  };
  write("/data/1/b"), write("/data/1/DONE");
  EXPECT_EQ(all().back().roll_of_all.has_value(), true);
  site.gate->fail(sim::Site::gate_number(0), Kind::timed_out);
  write("/data/2/b"), write("/data/2/DONE");
  EXPECT_EQ(all().back().step, 2u);
  EXPECT_FALSE(all().back().roll_of_all.has_value()) << "the first rank may have had files of it";
}

// The second rank may be on any node.
TEST_F(NodeWithoutRanks, is_not_known_where_a_rank_has_written_nothing) {
  run.attempt = 2;
  const auto alone = Front::make(settings, *Patterns::parse(settings.checkpoint), run, {0, 2, settings.local[0]});
  Status status;
  const int fd = alone->open_to_write(*alone->match("/data/3/a.0"), O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
  ASSERT_GE(fd, 0) << status.sentence();
  site.close(fd);
  alone->closed(fd);
  site.gate->fail(sim::Site::gate_number(3), Kind::timed_out);
  EXPECT_FALSE(roll_ended(run, settings, {}).empty());
}

}  // namespace
}  // namespace holdfast::checkpoint
