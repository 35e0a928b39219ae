// With M = 1 a version needs all nodes that it was begun on. One of them had a full disk: the file was not protected, though there was a node with room. The same
// where a node was lost between the choice of nodes and the first write.
#include <gtest/gtest.h>

#include "catalog/pool.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/survey.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::checkpoint {
namespace {

class FullNode : public ::testing::Test {
 protected:
  void begin(const std::string& scheme, int nodes) {
    for (int n = 1; n <= nodes; ++n) site.add_node_disk("n" + std::to_string(n)), settings.local.push_back(site.disks.back().address);
    settings.protect = scheme;
    ASSERT_TRUE(catalog::open_pool(settings).ok());
    ASSERT_TRUE(catalog::replace_file("/data/source", "/data/source.new", std::string(20000, 'a'), 0600, false).ok());
  }
  // By the first node.
  Result<ProtectedNow> protect_one() {
    return protect("/data/source", {"00000000000000ab", 1, 10, 0, 1, 1, "/data/ck.10.0", 1, 1}, settings.local[0], settings);
  }
  std::vector<std::string> holders() {
    std::vector<std::string> all;
    const auto found = catalog::VersionList().look(settings.local, settings.deadline_ms);
    for (const catalog::FoundVersion& one : *found)
      for (const std::string& node : one.on) all.push_back(node.substr(0, node.find(':')));
    return all;
  }

  sim::Site site{1};
  catalog::ReplacedEnvironment in_site{site};
  Settings settings;
};

using Names = std::vector<std::string>;

TEST_F(FullNode, is_left_out_for_a_spare_one_of_its_group) {
  begin("rs:2+1", 4);
  site.disks[1].full = true;
  const auto done = protect_one();
  ASSERT_TRUE(done.ok()) << done.status().sentence();
  EXPECT_EQ(done->lost_members, 0);
  EXPECT_EQ(holders(), (Names{"n1", "n3", "n4"}));
}

TEST_F(FullNode, is_left_out_for_one_of_another_group) {
  begin("mirror:2", 4);
  site.disks[1].full = true;
  ASSERT_TRUE(protect_one().ok());
  EXPECT_EQ(holders(), (Names{"n1", "n3"}));
}

TEST_F(FullNode, may_be_any_of_them_and_several) {
  begin("rs:2+1", 6);
  for (const int full : {0, 1, 4}) site.disks[size_t(full)].full = true;
  ASSERT_TRUE(protect_one().ok());
  EXPECT_EQ(holders(), (Names{"n3", "n4", "n6"}));
}

TEST_F(FullNode, is_named_where_there_is_no_other) {
  begin("rs:2+1", 4);
  for (const int full : {1, 3}) site.disks[size_t(full)].full = true;
  const auto done = protect_one();
  EXPECT_FALSE(done.ok());
  EXPECT_NE(done.status().sentence().find("n2"), std::string::npos) << done.status().sentence();
  EXPECT_EQ(holders(), Names());
}

// At whichever call.
TEST_F(FullNode, is_no_other_case_than_one_that_is_lost_on_the_way) {
  begin("rs:2+1", 4);
  for (int call = 1; call < 40; ++call) {
    site.gate->fail_later(sim::Site::gate_number(1), call, Kind::io);
    const auto done = protect_one();
    ASSERT_TRUE(done.ok()) << "call " << call << ": " << done.status().sentence();
    site.gate->heal(sim::Site::gate_number(1));
    const auto found = catalog::VersionList().look(settings.local, settings.deadline_ms);
    for (const catalog::FoundVersion& one : *found) (void)catalog::remove_version(catalog::locate_version(one.manifest, settings));
  }
}

}  // namespace
}  // namespace holdfast::checkpoint
