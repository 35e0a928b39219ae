// A protector that dies between its manifests leaves a version that can be read, by one copy. The older checkpoint was dropped for it, and the loss of the node
// with that copy, which the scheme bears, took both.
#include <gtest/gtest.h>

#include "catalog/pool.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/protector.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::checkpoint {
namespace {

constexpr const char* run_id = "00000000000000ab";

class OlderCheckpoint : public testing::Test {
 protected:
  OlderCheckpoint() {
    for (const char* name : {"n1", "n2", "n3", "n4"}) site.add_node_disk(name);
    for (const sim::NodeDisk& disk : site.disks) settings.local.push_back(disk.address);
    settings.protect = "mirror:3";
    EXPECT_TRUE(catalog::open_pool(settings).ok());
  }

  void write(uint64_t step) {
    const catalog::Descriptor file(site.openat(AT_FDCWD, "/data/ck", O_WRONLY | O_CREAT | O_TRUNC, 0600));
    ASSERT_EQ(site.write(file.get(), "some bytes", 10), 10);
    const layout::Version version{run_id, 1, step, 0, 1, 1, "/ck." + std::to_string(step), step};
    ASSERT_TRUE(protect("/data/ck", version, "n1:/n1", settings).ok());
  }
  // As its writer leaves it when it dies after the first copy.
  void remove_manifests(uint64_t step, size_t from_node) {
    for (const catalog::FoundVersion& one : look())
      if (one.manifest.version->step == step)
        for (size_t node = from_node; node < site.disks.size(); ++node)
          if (const auto directory = site.tree.find(*site.disks[node].root, one.manifest.directory)) site.tree.remove(*directory, "manifest");
  }
  std::vector<catalog::FoundVersion> look() { return *catalog::VersionList().look(settings.local, settings.deadline_ms); }
  std::vector<Checkpoint> checkpoints() { return checkpoints_of(protected_of(look())); }

  sim::Site site{1};
  catalog::ReplacedEnvironment in_site{site};
  Settings settings;
};

TEST_F(OlderCheckpoint, stays_while_the_newer_one_has_one_copy_of_a_manifest) {
  write(1), write(2);
  EXPECT_EQ(to_drop(checkpoints(), run_id, 1).size(), 1u);
  remove_manifests(2, 1);
  const auto all = checkpoints();
  ASSERT_TRUE(newest_whole(all, run_id));
  EXPECT_EQ(newest_whole(all, run_id)->step, 2u);  // it can be read, and is gone on from
  EXPECT_TRUE(to_drop(all, run_id, 1).empty());
}

TEST_F(OlderCheckpoint, goes_when_the_newer_one_was_made_anew) {
  write(1), write(2);
  remove_manifests(2, 1);
  const checkpoint::Run run{run_id, 2, checkpoint::Run::From{1, 2}, false, settings.local};
  Protector protector(settings, run, "n1:/n1", [](const std::string&) {});
  ASSERT_TRUE(protector.begin().ok());
  protector.work();
  for (const catalog::FoundVersion& one : look()) EXPECT_TRUE(one.is_complete()) << one.manifest.path;
  EXPECT_EQ(to_drop(checkpoints(), run_id, 1).size(), 1u);
}

}  // namespace
}  // namespace holdfast::checkpoint
