// A plain repair had looked for its file while `repair --replace` moved a target's part elsewhere. It then made the old target whole and
// named it in the new one's place again: the replacement was undone without a word.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast {
namespace {

class RepairBesideReplacement : public ::testing::Test {
 protected:
  RepairBesideReplacement() {
    const Bytes content(30 * 8192, std::byte(7));
    auto file = *world_.open(*solo_, true);
    const Extent extent{0, content.size()};
    EXPECT_TRUE(file->write({&extent, 1}, content).ok() && file->close().ok());
  }

  catalog::Member fresh_for(int index) {
    catalog::Member member;
    member.index = index;
    member.uuid = uuid_;
    member.path = "/n1";
    member.target = target::make_memory_target(fresh_, "/n1");
    member.lane = target::make_inline_lane();
    return member;
  }

  void replace_member_1() {
    auto located = world_.locate();
    located.replacements.push_back(fresh_for(1));
    auto report = engine::repair(located, world_.settings, nullptr);
    ASSERT_TRUE(report.ok()) << report.status().sentence();
    ASSERT_EQ(located.manifest.members[1].uuid, uuid_);
  }

  sim::World world_{"rs:2+1"};
  std::unique_ptr<exchange::Exchange> solo_ = exchange::make_solo();
  const std::string uuid_ = layout::random_id();
  std::shared_ptr<target::MemoryDirectory> fresh_ = std::make_shared<target::MemoryDirectory>();
};

TEST_F(RepairBesideReplacement, leaves_the_new_target_in_its_place) {
  auto before = world_.locate();
  replace_member_1();
  auto report = engine::repair(before, world_.settings, nullptr);
  EXPECT_EQ(report.status().kind(), Kind::stale);
  EXPECT_NE(report.status().sentence().find("/t1 was replaced by /n1"), std::string::npos) << report.status().sentence();

  world_.directories[1] = fresh_;
  world_.identity.members[1].uuid = uuid_;
  world_.identity.members[1].path = "/n1";
  auto checked = engine::verify(world_.locate(), world_.settings, nullptr);
  ASSERT_TRUE(checked.ok()) << checked.status().sentence();
  EXPECT_EQ(checked->status.health, engine::Health::healthy);
  EXPECT_EQ(checked->status.members[1].state, "ok") << checked->status.members[1].why;
}

// Each repair had found the directory empty and no member's. The second one named it as another member too, with the same objects there.
TEST_F(RepairBesideReplacement, gives_no_directory_two_places) {
  for (const bool lost : {false, true}) {
    auto before = world_.locate();
    before.replacements.push_back(fresh_for(2));
    if (!lost) replace_member_1();
    if (lost) before.members[1].target = nullptr, before.members[1].lost = Status(Kind::lost, "its node is gone"), before.members[1].uuid = "";
    auto report = engine::repair(before, world_.settings, nullptr);
    ASSERT_EQ(report.status().kind(), Kind::stale) << report.status().sentence();
    EXPECT_EQ(report.status().sys_errno(), ESTALE) << "it is to look again";
    EXPECT_NE(report.status().sentence().find("/n1"), std::string::npos) << report.status().sentence();
  }
}

// It found the member lost, whose place another repair has given to somebody else since.
TEST_F(RepairBesideReplacement, of_a_lost_member_gives_its_place_to_one_only) {
  auto before = world_.locate();
  before.members[1].target = nullptr, before.members[1].lost = Status(Kind::lost, "its node is gone"), before.members[1].uuid = "";
  before.replacements.push_back(fresh_for(1));
  before.replacements[0].uuid = layout::random_id();
  before.replacements[0].path = "/n9";
  before.replacements[0].target = target::make_memory_target(std::make_shared<target::MemoryDirectory>(), "/n9");
  replace_member_1();
  auto report = engine::repair(before, world_.settings, nullptr);
  ASSERT_EQ(report.status().kind(), Kind::stale) << report.status().sentence();
  EXPECT_EQ(report.status().sys_errno(), ESTALE);
}

}  // namespace
}  // namespace holdfast
