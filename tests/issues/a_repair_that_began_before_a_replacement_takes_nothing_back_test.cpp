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

  void replace_member_1() {
    auto located = world_.locate();
    catalog::Member member;
    member.index = 1;
    member.uuid = uuid_;
    member.path = "/n1";
    member.target = target::make_memory_target(fresh_, "/n1");
    member.lane = target::make_inline_lane();
    located.replacements.push_back(std::move(member));
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

}  // namespace
}  // namespace holdfast
