// Two ranks on the first and the third of four nodes, whose checkpoints are kept there and by the node beside each: the scene of checkpoints' issues.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "catalog/pool.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/protector.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::checkpoint {

class TwoRanks : public ::testing::Test {
 protected:
  using Front = frontend::posix::Checkpoints;

  explicit TwoRanks(const std::string& pattern) {
    for (const char* name : {"n1", "n2", "n3", "n4"}) site.add_node_disk(name), settings.local.push_back(site.disks.back().address);
    settings.protect = "mirror:2";
    settings.checkpoint = {pattern};
    EXPECT_TRUE(catalog::open_pool(settings).ok());
    run = {.id = "00000000000000ab", .attempt = 1, .from = {}, .nodes = settings.local};
    for (const uint32_t rank : {0, 1}) {
      const std::string& node = settings.local[rank * 2];
      fronts.push_back(Front::make(settings, *Patterns::parse(settings.checkpoint), run, {rank, 2, node}));
      protectors.emplace_back(settings, run, node, [](const std::string& sentence) { ADD_FAILURE() << sentence; });
      EXPECT_TRUE(protectors.back().begin().ok());
    }
  }
  // An empty file, which its node protects at once.
  void write_file(uint32_t rank, const std::string& path) {
    const auto file = fronts[rank]->match(path);
    Status status;
    const int fd = fronts[rank]->open_to_write(*file, O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
    ASSERT_GE(fd, 0) << status.sentence();
    site.close(fd);
    fronts[rank]->closed(fd);
    protectors[rank].work();
  }
  // Another attempt, which begins with that step of the first one.
  void begin_again_with(uint64_t step) {
    run.attempt = 2, run.from = Run::From{1, step};
    fronts.clear(), protectors.clear();
    for (const uint32_t rank : {0, 1}) {
      fronts.push_back(Front::make(settings, *Patterns::parse(settings.checkpoint), run, {rank, 2, settings.local[rank * 2]}));
      protectors.emplace_back(settings, run, settings.local[rank * 2], [](const std::string& sentence) { ADD_FAILURE() << sentence; });
      ASSERT_TRUE(protectors.back().begin().ok());
    }
  }
  // As `run` does, which keeps the newest one alone.
  void drop_as_run_does(const std::vector<Protected>& old) {
    note_giving_way(old, run, settings);
    for (const auto& files : surveyor.stores_of(old)) ASSERT_TRUE(checkpoint::drop(files, run.attempt, settings).ok());
  }
  std::vector<Checkpoint> all() { return *surveyor.look_at_versions(); }
  std::vector<uint64_t> whole() {
    std::vector<uint64_t> steps;
    for (const Checkpoint& one : all())
      if (one.whole()) steps.push_back(one.step);
    return steps;
  }

  sim::Site site{1};
  catalog::ReplacedEnvironment in_site{site};
  Settings settings;
  checkpoint::Run run;
  std::vector<std::unique_ptr<Front>> fronts;
  std::vector<Protector> protectors;
  Surveyor surveyor{{"n1:/n1", "n2:/n2", "n3:/n3", "n4:/n4"}, 1000};
};

}  // namespace holdfast::checkpoint
