// Steps that count down, and a rank that had removed all its files of the drained checkpoint: the first file of that one was another rank's than the first file of
// the newer one on the nodes, and of two nodes the higher step counts. An attempt began with the older checkpoint. Found by the simulator, seed 1819.
#include <gtest/gtest.h>

#include "catalog/user_files.hpp"
#include "checkpoint/attempt.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::checkpoint {
namespace {

constexpr const char* countdown_run = "00000000000000ab";

// Of two ranks, each on a node of its own.
layout::Version file_of(uint32_t rank, uint64_t step, uint64_t written) {
  layout::Version version{countdown_run, 1, step, 0, 0, 1, "/data/" + std::to_string(step) + ".a." + std::to_string(rank), written, 1, 2, rank};
  version.stem = ".a." + std::to_string(rank);
  return version;
}
std::string id_on(const layout::Version& version) {
  return std::to_string(version.step) + std::string(catalog::node_digits, char('0' + version.writer));
}
Protected found_of(const layout::Version& version) { return {version, id_on(version)}; }

// As its record comes back from a node.
DrainedCheckpoint drained_of(const std::vector<layout::Version>& versions) {
  std::vector<layout::Manifest> files;
  std::vector<Protected> found;
  for (const layout::Version& version : versions) {
    files.emplace_back().file_id = id_on(version);
    files.back().version = version;
    found.push_back(found_of(version));
    EXPECT_TRUE(catalog::replace_file(version.file, version.file + ".new", "content", 0600, false).ok());
  }
  return *decode_drained(encode(*drained_now(files, checkpoints_of(found).front().ages())));
}

TEST(DrainedCountdown, is_older_than_what_the_same_ranks_wrote_later) {
  sim::Site site(1);
  const catalog::ReplacedEnvironment in_site(site);
  layout::Version roll = file_of(0, 10, 2);
  roll.roll = layout::Roll{true, {{file_of(0, 10, 2).file, 1, 2}, {file_of(1, 10, 2).file, 1, 2}}};
  Survey survey;
  survey.checkpoints = checkpoints_of({found_of(file_of(0, 10, 2)), found_of(file_of(1, 10, 2)), found_of(roll)});
  survey.drained = {drained_of({file_of(1, 20, 1)})};
  EXPECT_EQ(beginning_of(survey, countdown_run).from, (checkpoint::Run::From{1, 10}));
  // And of what was written later the other way round.
  survey.drained = {drained_of({file_of(1, 20, 3)})};
  EXPECT_EQ(beginning_of(survey, countdown_run).from, (checkpoint::Run::From{1, 20, true}));
}

// One rank has removed its only file of the drained one, and the other rank its only file of the newer one. What it had written of that lies beside it on the nodes. Found by
// the simulator, seed 331 of the renamed ones.
TEST(DrainedCountdown, is_older_than_what_the_same_ranks_wrote_later_and_removed) {
  sim::Site site(1);
  const catalog::ReplacedEnvironment in_site(site);
  layout::Version roll = file_of(0, 10, 2);
  roll.roll = layout::Roll{true, {{file_of(1, 10, 2).file, 1, 2}}};
  Survey survey;
  survey.checkpoints = checkpoints_of({found_of(file_of(0, 10, 2)), found_of(file_of(1, 10, 2)), found_of(roll)});
  ASSERT_EQ(survey.checkpoints.front().files.size(), 1u) << "the first rank's file is listed by no roll";
  survey.drained = {drained_of({file_of(0, 20, 1)})};
  EXPECT_EQ(beginning_of(survey, countdown_run).from, (checkpoint::Run::From{1, 10}));
  survey.drained = {drained_of({file_of(0, 20, 3)})};
  EXPECT_EQ(beginning_of(survey, countdown_run).from, (checkpoint::Run::From{1, 20, true}));
}

}  // namespace
}  // namespace holdfast::checkpoint
