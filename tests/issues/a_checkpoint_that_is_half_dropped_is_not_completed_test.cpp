// A checkpoint was dropped while a node was away that had some of its files. The node came back before the job ended, and what it had was listed then as all that
// belongs to the checkpoint: it was whole again, with a part of its files. Found by the simulator.
#include <gtest/gtest.h>

#include "catalog/pool.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/protector.hpp"
#include "checkpoint/roll.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::checkpoint {
namespace {

using Front = frontend::posix::Checkpoints;

// Two ranks on the first and the third of four nodes, with two files of each step; what each writes is kept there and by the node beside it.
class HalfDropped : public ::testing::Test {
 protected:
  HalfDropped() {
    for (const char* name : {"n1", "n2", "n3", "n4"}) site.add_node_disk(name), settings.local.push_back(site.disks.back().address);
    settings.protect = "mirror:2";
    settings.checkpoint = {"/data/{step}/*.{rank}"};
    EXPECT_TRUE(catalog::open_pool(settings).ok());
    run = {.id = "00000000000000ab", .attempt = 1, .from = {}, .nodes = settings.local};
    for (const uint32_t rank : {0, 1}) {
      const std::string& node = settings.local[rank * 2];
      fronts.push_back(Front::make(settings, *Patterns::parse(settings.checkpoint), run, {rank, 2, node}));
      protectors.emplace_back(settings, run, node, [](const std::string& sentence) { ADD_FAILURE() << sentence; });
      EXPECT_TRUE(protectors.back().begin().ok());
    }
  }
  void write(uint64_t step) {
    for (const uint32_t rank : {0, 1})
      for (const char* name : {"a", "b"}) {
        const auto file = fronts[rank]->match("/data/" + std::to_string(step) + "/" + name + "." + std::to_string(rank));
        Status status;
        const int fd = fronts[rank]->open_to_write(*file, O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
        ASSERT_GE(fd, 0) << status.sentence();
        site.close(fd);
        fronts[rank]->closed(fd);
        protectors[rank].work();
      }
  }
  std::vector<uint64_t> whole() {
    std::vector<uint64_t> steps;
    const auto all = surveyor.look_at_versions();
    for (const Checkpoint& one : *all)
      if (one.whole()) steps.push_back(one.step);
    return steps;
  }
  void drop_while_the_second_node_is_away(uint64_t step) {
    site.gate->fail(sim::Site::gate_number(1), Kind::timed_out);
    const auto all = surveyor.look_at_versions();
    for (const catalog::FoundVersion& one : surveyor.last_versions())
      if (one.manifest.version->step == step) (void)drop(one.manifest, run.attempt, settings);
    site.heal(sim::Site::gate_number(1));
  }

  sim::Site site{1};
  catalog::ReplacedEnvironment in_site{site};
  Settings settings;
  checkpoint::Run run;
  std::vector<std::unique_ptr<Front>> fronts;
  std::vector<Protector> protectors;
  Surveyor surveyor{{"n1:/n1", "n2:/n2", "n3:/n3", "n4:/n4"}, 1000};
};

TEST_F(HalfDropped, is_not_completed_by_the_end_of_the_job) {
  write(1), write(2);
  EXPECT_EQ(whole(), std::vector<uint64_t>{1});
  drop_while_the_second_node_is_away(1);
  EXPECT_EQ(whole(), std::vector<uint64_t>{});
  EXPECT_TRUE(roll_ended(run, settings).empty());
  EXPECT_EQ(whole(), std::vector<uint64_t>{2}) << "of the first one the second node alone has what it had";
}

TEST_F(HalfDropped, is_completed_where_its_files_are_written_anew) {
  write(1), write(2);
  drop_while_the_second_node_is_away(1);
  write(1);
  EXPECT_TRUE(roll_ended(run, settings).empty());
  EXPECT_EQ(whole(), (std::vector<uint64_t>{2, 1})) << "as they were written";
}

}  // namespace
}  // namespace holdfast::checkpoint
