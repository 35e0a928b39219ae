// `repair --replace` that was cut short before the set was told leaves a directory whose own marker alone knows of it, and which may hold the
// file already. Whoever looked for a set from there on took that marker for one of a set that was never finished, and made a new set of it.
#include <gtest/gtest.h>

#include <filesystem>

#include "catalog/catalog.hpp"
#include "catalog/marker.hpp"
#include "engine/protected_file.hpp"
#include "engine/repair_file.hpp"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

class OnItsWay : public ::testing::Test {
 protected:
  OnItsWay() {
    char name[] = "/tmp/holdfast-issue-XXXXXX";
    base_ = ::mkdtemp(name);
    for (const char* directory : {"a", "b", "c", "n", "m"}) fs::create_directory(base_ + "/" + directory);
    settings_.protect = "rs:2+1";
    settings_.targets = {at("a"), at("b"), at("c")};
    settings_.striping_unit = 4096;
    auto located = catalog::create(at("f"), settings_, 0644);
    set_ = located->manifest.set_id;
    auto file = *engine::ProtectedFile::open(std::move(*located), {true, true, true}, settings_, *alone_);
    const Bytes content(30000, std::byte(7));
    const Extent extent{0, content.size()};
    EXPECT_TRUE(file->write({&extent, 1}, content).ok() && file->close().ok());
  }
  ~OnItsWay() override { fs::remove_all(base_); }
  std::string at(const std::string& name) const { return base_ + "/" + name; }

  // The file is on n, in the place of a, and the set does not know: what is left of `repair --replace a=n` that was killed at its end.
  void replace_but_tell_nobody() {
    auto located = catalog::locate(at("f"), settings_);
    auto fresh = catalog::prepare_replacement(at("b"), at("a"), at("n"), settings_);
    ASSERT_TRUE(fresh.ok()) << fresh.status().sentence();
    located->replacements.push_back(*fresh);
    auto report = engine::repair(*located, settings_, nullptr);
    ASSERT_TRUE(report.ok()) << report.status().sentence();
    ASSERT_EQ(located->manifest.members[0].path, at("n"));
  }

  std::unique_ptr<exchange::Exchange> alone_ = exchange::make_solo();
  std::string base_, set_;
  Settings settings_;
};

TEST_F(OnItsWay, a_member_leads_to_the_set_that_it_is_to_belong_to) {
  replace_but_tell_nobody();
  Settings any_width = settings_;
  any_width.protect.reset();
  auto set = catalog::open_or_create_set({at("n")}, any_width);
  ASSERT_TRUE(set.ok()) << set.status().sentence();
  EXPECT_EQ(set->id, set_);
  EXPECT_EQ(set->members.size(), 3u);
}

TEST_F(OnItsWay, another_member_can_be_replaced_meanwhile) {
  replace_but_tell_nobody();
  auto report = engine::repair_file(at("f"), {{at("c"), at("m")}}, false, settings_, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().sentence();
  EXPECT_EQ(report->status.health, engine::Health::healthy);
  auto located = catalog::locate(at("f"), settings_);
  ASSERT_TRUE(located.ok());
  for (const auto& member : located->members) EXPECT_TRUE(member.usable()) << member.path << ": " << member.lost.sentence();
  EXPECT_EQ(located->manifest.members[2].path, at("m"));
}

// Killed a little earlier, before the sidecar knew as well: the other targets' manifests alone led to n, and status called all of it well.
TEST_F(OnItsWay, is_not_called_well_before_anything_else_leads_to_it) {
  fs::copy(at(".f.holdfast/manifest"), at("before"));
  replace_but_tell_nobody();
  fs::copy(at("before"), at(".f.holdfast/manifest"), fs::copy_options::overwrite_existing);
  auto told = engine::file_status(*catalog::locate(at("f"), settings_), settings_);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->members[0].state, "unfinished") << told->members[0].why;
  EXPECT_EQ(told->health, engine::Health::degraded);
  auto report = engine::repair_file(at("f"), {}, false, settings_, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().sentence();
  EXPECT_EQ(report->status.health, engine::Health::healthy);
  fs::remove_all(at("b"));
  auto located = catalog::locate(at("f"), settings_);
  ASSERT_TRUE(located.ok()) << located.status().sentence();
  EXPECT_EQ(located->members[0].path, at("n"));
}

// Its own set cannot be seen: nothing is made of it.
TEST_F(OnItsWay, is_left_alone_where_its_set_is_out_of_reach) {
  replace_but_tell_nobody();
  for (const char* name : {"a", "b", "c"}) fs::rename(at(name), at(std::string(name) + ".away"));
  Settings any_width = settings_;
  any_width.protect.reset();
  const Status refused = catalog::open_or_create_set({at("n")}, any_width).status();
  EXPECT_FALSE(refused.ok());
  EXPECT_NE(refused.sentence().find("out of reach"), std::string::npos) << refused.sentence();
  for (const char* name : {"a", "b", "c"}) fs::rename(at(std::string(name) + ".away"), at(name));
  auto located = catalog::locate(at("f"), settings_);
  ASSERT_TRUE(located.ok());
  EXPECT_TRUE(located->members[0].usable()) << located->members[0].lost.sentence();
}

}  // namespace
}  // namespace holdfast
