#include <algorithm>
#include <thread>

#include "catalog/marker.hpp"
#include "unit/catalog/scene.hpp"

namespace holdfast::catalog {
namespace {

using TargetSetTest = Scene;

std::vector<std::string> paths(const TargetSet& set) {
  std::vector<std::string> all;
  for (const Member& member : set.members) all.push_back(member.path);
  return all;
}

TEST_F(TargetSetTest, EmptyDirectoriesBecomeASetWithMarkers) {
  targets(3, "mirror:3");
  fs::create_directory(target(1) + "/lost+found");
  auto set = open_or_create_set(settings.targets, settings);
  ASSERT_TRUE(set) << set.status().sentence();
  EXPECT_EQ(set->epoch, 1u);
  EXPECT_EQ(paths(*set), settings.targets);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(fs::exists(target(i) + "/" + marker_name));
  auto again = open_or_create_set(settings.targets, settings);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, set->id);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(again->members[size_t(i)].uuid, set->members[size_t(i)].uuid);
}

TEST_F(TargetSetTest, OrderIsTheMarkersWhateverTheUserTypes) {
  targets(3, "mirror:3");
  ASSERT_TRUE(open_or_create_set(settings.targets, settings));
  auto set = open_or_create_set({target(2), target(0), target(1)}, settings);
  ASSERT_TRUE(set);
  EXPECT_EQ(paths(*set), settings.targets);
}

TEST_F(TargetSetTest, MembersThatAreNotTypedAreFoundByTheMarkers) {
  targets(3, "mirror:3");
  ASSERT_TRUE(open_or_create_set(settings.targets, settings));
  auto set = open_or_create_set({target(1)}, settings);
  ASSERT_TRUE(set) << set.status().sentence();
  EXPECT_EQ(paths(*set), settings.targets);
  EXPECT_TRUE(set->members[0].usable());
}

TEST_F(TargetSetTest, MissingDirectoryOfASetIsALostMember) {
  targets(3, "mirror:3");
  ASSERT_TRUE(open_or_create_set(settings.targets, settings));
  fs::remove_all(target(1));
  auto set = open_or_create_set(settings.targets, settings);
  ASSERT_TRUE(set) << set.status().sentence();
  EXPECT_FALSE(set->members[1].usable());
  EXPECT_FALSE(set->members[1].lost.ok());
  EXPECT_TRUE(set->members[0].usable() && set->members[2].usable());
}

TEST_F(TargetSetTest, EmptyDirectoryAtAMembersPathIsLostAndNeverAdopted) {
  targets(3, "mirror:3");
  ASSERT_TRUE(open_or_create_set(settings.targets, settings));
  empty(target(1));
  auto set = open_or_create_set(settings.targets, settings);
  ASSERT_TRUE(set) << set.status().sentence();
  EXPECT_TRUE(says(set->members[1].lost, "mount missing"));
  EXPECT_FALSE(fs::exists(target(1) + "/" + marker_name));
}

TEST_F(TargetSetTest, ADirectoryThatNobodyNamesMustExist) {
  targets(2, "mirror:2");
  EXPECT_TRUE(says(open_or_create_set({target(0), target(7)}, settings).status(), "does not exist"));
  EXPECT_FALSE(fs::exists(target(0) + "/" + marker_name));
  ASSERT_TRUE(open_or_create_set(settings.targets, settings));
  EXPECT_TRUE(says(open_or_create_set({target(0), target(7)}, settings).status(), "does not exist"));
}

TEST_F(TargetSetTest, ADirectoryWithContentIsNotMadeATarget) {
  targets(2, "mirror:2");
  write(target(1) + "/thesis.tex", "precious");
  EXPECT_TRUE(says(open_or_create_set(settings.targets, settings).status(), "not empty"));
  EXPECT_FALSE(fs::exists(target(0) + "/" + marker_name));
}

TEST_F(TargetSetTest, TwoSetsDoNotMix) {
  targets(4, "mirror:2");
  auto one = open_or_create_set({target(0), target(1)}, settings);
  auto two = open_or_create_set({target(2), target(3)}, settings);
  ASSERT_TRUE(one && two);
  Status mixed = open_or_create_set({target(0), target(2)}, settings).status();
  EXPECT_TRUE(says(mixed, one->id));
  EXPECT_TRUE(says(mixed, two->id));
}

TEST_F(TargetSetTest, ASetDoesNotGrow) {
  targets(3, "mirror:2");
  ASSERT_TRUE(open_or_create_set({target(0), target(1)}, settings));
  EXPECT_TRUE(says(open_or_create_set(settings.targets, settings).status(), "members are fixed"));
}

TEST_F(TargetSetTest, OneDirectoryCannotBeTwoTargets) {
  targets(2, "mirror:2");
  EXPECT_TRUE(says(open_or_create_set({target(0), target(0)}, settings).status(), "same directory"));
  fs::create_directory_symlink(target(0), target(5));
  EXPECT_TRUE(says(open_or_create_set({target(0), target(5)}, settings).status(), "same directory"));
}

TEST_F(TargetSetTest, FewerTargetsThanTheSchemeNeedsIsAnError) {
  targets(3, "rs:4+2");
  EXPECT_TRUE(says(open_or_create_set(settings.targets, settings).status(), "needs 6 target directories"));
}

TEST_F(TargetSetTest, AMarkerCopiedFromAnotherMemberIsLost) {
  targets(3, "mirror:3");
  ASSERT_TRUE(open_or_create_set(settings.targets, settings));
  fs::copy_file(target(0) + "/" + marker_name, target(2) + "/" + marker_name, fs::copy_options::overwrite_existing);
  auto set = open_or_create_set(settings.targets, settings);
  ASSERT_TRUE(set) << set.status().sentence();
  EXPECT_TRUE(says(set->members[2].lost, "another target"));
}

TEST_F(TargetSetTest, AMarkerWithAFlippedBitIsUnderstoodAndMended) {
  targets(3, "mirror:3");
  ASSERT_TRUE(open_or_create_set(settings.targets, settings));
  const std::string whole = read(target(1) + "/" + marker_name);
  for (const size_t at : {size_t(5), whole.find("epoch") + 8, whole.find("index") + 8, whole.size() - 3}) {
    std::string text = whole;
    text[at] ^= 1;
    write(target(1) + "/" + marker_name, text);
    auto only_looked = open_whole_set(settings.targets, settings, 0755);
    ASSERT_TRUE(only_looked) << only_looked.status().sentence();
    EXPECT_TRUE(only_looked->members[1].usable());
    EXPECT_EQ(read(target(1) + "/" + marker_name), text) << "who looks changes nothing";
    auto set = open_or_create_set(settings.targets, settings);
    ASSERT_TRUE(set) << set.status().sentence();
    EXPECT_TRUE(set->members[1].usable());
    EXPECT_EQ(read(target(1) + "/" + marker_name), whole);
  }
}

TEST_F(TargetSetTest, ADamagedMarkerIsALostMember) {
  targets(3, "mirror:3");
  ASSERT_TRUE(open_or_create_set(settings.targets, settings));
  std::string text = read(target(1) + "/" + marker_name);
  text[text.size() / 2] ^= 3;
  write(target(1) + "/" + marker_name, text);
  auto set = open_or_create_set(settings.targets, settings);
  ASSERT_TRUE(set) << set.status().sentence();
  EXPECT_TRUE(says(set->members[1].lost, "cannot be used"));
}

TEST_F(TargetSetTest, ASetWhoseMakingWasCutShortIsMadeAnew) {
  targets(2, "mirror:2");
  Marker marker;
  marker.set_id = layout::random_id();
  marker.members = {{layout::random_id(), target(0)}, {layout::random_id(), target(1)}};
  write(target(0) + "/" + marker_name, encode(marker));
  auto set = open_or_create_set(settings.targets, settings);
  ASSERT_TRUE(set) << set.status().sentence();
  EXPECT_TRUE(set->members[0].usable() && set->members[1].usable());
  EXPECT_EQ(set->epoch, 1u);
}

// Each had put markers of its own on some of the directories.
TEST_F(TargetSetTest, ASetWhoseMakersWereCutShortOneAfterAnotherIsMadeAnew) {
  targets(3, "rs:2+1");
  for (int maker = 0; maker < 2; ++maker) {
    Marker marker;
    marker.set_id = layout::random_id();
    for (int i = 0; i < 3; ++i) marker.members.push_back({layout::random_id(), target(i)});
    for (marker.index = 2 * maker; marker.index < 1 + 2 * maker; ++marker.index) write(target(marker.index) + "/" + marker_name, encode(marker));
  }
  auto set = open_or_create_set(settings.targets, settings);
  ASSERT_TRUE(set) << set.status().sentence();
  for (const Member& member : set->members) EXPECT_TRUE(member.usable());
}

// Its maker had finished one marker; the program died of the directory that was not there.
TEST_F(TargetSetTest, AnUnfinishedSetWithALostMemberIsOpened) {
  targets(3, "rs:2+1");
  Marker marker;
  marker.set_id = layout::random_id();
  for (int i = 0; i < 3; ++i) marker.members.push_back({layout::random_id(), target(i)});
  for (marker.index = 1; marker.index < 3; ++marker.index) {
    marker.epoch = uint64_t(marker.index - 1);
    write(target(marker.index) + "/" + marker_name, encode(marker));
  }
  fs::remove_all(target(0));
  auto set = open_or_create_set(settings.targets, settings);
  ASSERT_TRUE(set) << set.status().sentence();
  EXPECT_FALSE(set->members[0].usable());
  EXPECT_TRUE(set->members[1].usable() && set->members[2].usable());
}

TEST_F(TargetSetTest, ProcessesThatStartTogetherMakeOneSet) {
  targets(3, "mirror:3");
  std::vector<std::string> ids(4);
  std::vector<std::thread> threads;
  for (auto& id : ids)
    threads.emplace_back([&] {
      auto set = open_or_create_set(settings.targets, settings);
      id = set ? set->id : set.status().sentence();
    });
  for (auto& thread : threads) thread.join();
  for (const auto& id : ids) EXPECT_EQ(id, ids[0]);
  EXPECT_EQ(ids[0].size(), 32u);
}

TEST_F(TargetSetTest, AReplacementTakesTheLostMembersPlace) {
  targets(4, "mirror:3");
  settings.targets.pop_back();
  auto before = open_or_create_set(settings.targets, settings);
  ASSERT_TRUE(before);
  fs::remove_all(target(1));
  auto after = replace_member(target(0), target(1), target(3), settings);
  ASSERT_TRUE(after) << after.status().sentence();
  EXPECT_EQ(after->epoch, 2u);
  EXPECT_EQ(paths(*after), (std::vector<std::string>{target(0), target(3), target(2)}));
  EXPECT_TRUE(after->members[1].usable());
  EXPECT_NE(after->members[1].uuid, before->members[1].uuid);
  // A job that still names the old list is understood.
  auto again = open_or_create_set(settings.targets, settings);
  ASSERT_TRUE(again) << again.status().sentence();
  EXPECT_EQ(paths(*again), paths(*after));
}

// A power cut took back what the other member had been told; the member that was replaced is gone.
TEST_F(TargetSetTest, AReplacementThatOnlyTheNewMemberKnowsIsFinished) {
  targets(3, "mirror:2");
  settings.targets.pop_back();
  ASSERT_TRUE(open_or_create_set(settings.targets, settings));
  const fs::path marker = fs::path(target(0)) / "holdfast-target.json", kept = root / "kept";
  fs::copy_file(marker, kept);
  ASSERT_TRUE(replace_member(target(0), target(1), target(2), settings));
  fs::remove_all(target(1));
  fs::copy_file(kept, marker, fs::copy_options::overwrite_existing);
  auto again = replace_member(target(0), target(1), target(2), settings);
  ASSERT_TRUE(again) << again.status().sentence();
  auto set = open_set({target(0)}, settings);
  ASSERT_TRUE(set) << set.status().sentence();
  EXPECT_EQ(paths(*set), (std::vector<std::string>{target(0), target(2)}));
  EXPECT_TRUE(set->members[1].usable());
}

TEST_F(TargetSetTest, AnEmptyDirectoryAtTheSamePathIsAdoptedWhenNamed) {
  targets(3, "mirror:3");
  ASSERT_TRUE(open_or_create_set(settings.targets, settings));
  empty(target(1));
  auto set = replace_member(target(0), target(1), target(1), settings);
  ASSERT_TRUE(set) << set.status().sentence();
  EXPECT_TRUE(set->members[1].usable());
  auto again = open_or_create_set(settings.targets, settings);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->members[1].usable());
}

TEST_F(TargetSetTest, AReplacedMemberThatComesBackIsNotOne) {
  targets(4, "mirror:3");
  settings.targets.pop_back();
  ASSERT_TRUE(open_or_create_set(settings.targets, settings));
  fs::rename(target(1), root / "away");
  ASSERT_TRUE(replace_member(target(0), target(1), target(3), settings));
  fs::rename(root / "away", target(1));
  auto set = open_or_create_set(settings.targets, settings);
  ASSERT_TRUE(set) << set.status().sentence();
  EXPECT_EQ(set->members[1].path, target(3));
}

TEST_F(TargetSetTest, OnlyAnEmptyDirectoryCanReplace) {
  targets(4, "mirror:3");
  settings.targets.pop_back();
  ASSERT_TRUE(open_or_create_set(settings.targets, settings));
  write(target(3) + "/x", "x");
  EXPECT_TRUE(says(replace_member(target(0), target(1), target(3), settings).status(), "not empty"));
  EXPECT_TRUE(says(replace_member(target(0), target(1), target(2), settings).status(), "target already"));
  EXPECT_TRUE(says(replace_member(target(0), target(8), target(3), settings).status(), "not a member"));
}

TEST(Marker, SurvivesItsOwnEncodingAndNoOther) {
  Marker marker;
  marker.set_id = layout::random_id();
  marker.epoch = 7;
  marker.index = 1;
  marker.members = {{layout::random_id(), "/a"}, {layout::random_id(), "/b\xff%\n"}};
  marker.former_paths = {"/old"};
  const std::string text = encode(marker);
  auto back = decode_marker(std::as_bytes(std::span(text.data(), text.size())));
  ASSERT_TRUE(back) << back.status().sentence();
  EXPECT_EQ(*back, marker);
  for (size_t n = 0; n < text.size(); n += 7) EXPECT_FALSE(decode_marker(std::as_bytes(std::span(text.data(), n))));
}

}  // namespace
}  // namespace holdfast::catalog
