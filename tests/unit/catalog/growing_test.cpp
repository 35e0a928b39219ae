// Files that several processes write together: what was completed stays, whoever was away then, and what was not goes.
#include "catalog/growing.hpp"

#include <sys/resource.h>
#include <csignal>

#include "catalog/pool.hpp"
#include "catalog/versions.hpp"
#include "engine/protected_file.hpp"
#include "engine/write_once.hpp"
#include "exchange/exchange.hpp"
#include "unit/catalog/scene.hpp"

namespace holdfast::catalog {
namespace {

const std::string owner = "0123456789abcdef 1\n";

class Growing : public Scene {
 protected:
  Growing() {
    targets(3, "rs:2+1");
    settings.local.swap(settings.targets);
    EXPECT_TRUE(open_pool(settings));
  }
  Located grow() {
    auto made = make_growing("/ck/ck.20", settings.local[0], 0644, owner, settings);
    EXPECT_TRUE(made) << made.status().sentence();
    const auto alone = exchange::make_solo();
    auto file = engine::ProtectedFile::open(*made, {.read = true, .write = true, .fresh = true}, settings, *alone);
    EXPECT_TRUE(file) << file.status().sentence();
    const std::string text = "content";
    const Extent all{0, text.size()};
    EXPECT_TRUE((*file)->write(std::span(&all, 1), std::as_bytes(std::span(text))).ok());
    EXPECT_TRUE((*file)->close().ok());
    return *made;
  }
  int complete(const Located& located) {
    const auto lost = engine::make_final(located, {"0123456789abcdef", 1, 20, 0, 1, 1, "/ck/ck.20", 1}, settings);
    EXPECT_TRUE(lost) << lost.status().sentence();
    release_growing(located);
    return lost ? *lost : -1;
  }
  void lose(Located& located, const std::string& path) {
    for (Member& member : located.members)
      if (member.path == path) member.lost = Status(Kind::lost, "away"), member.target.reset(), member.lane.reset();
  }
  void remove_left(std::vector<std::string> answering = {}) {
    remove_growing(
        answering.empty() ? settings.local : answering, [](const std::string& one) { return one == owner; }, settings.deadline_ms);
  }
  bool is_on(int member, const Located& located) const { return fs::exists(target(member) + "/" + located.manifest.directory); }
};

TEST_F(Growing, what_was_never_completed_goes_from_all) {
  const Located left = grow();
  remove_growing(
      settings.local, [](const std::string& one) { return one == "0123456789abcdef 2\n"; }, settings.deadline_ms);
  EXPECT_TRUE(is_on(0, left)) << "another attempt's";
  fs::remove(target(1) + "/" + left.manifest.directory + "/growing");  // killed before it was there
  remove_left();
  for (const int member : {0, 1, 2}) EXPECT_FALSE(is_on(member, left));
}

TEST_F(Growing, what_was_completed_while_a_member_was_away_stays_when_that_comes_back) {
  Located located = grow();
  lose(located, target(1));
  EXPECT_EQ(complete(located), 1);
  ASSERT_TRUE(fs::exists(target(1) + "/" + located.manifest.directory + "/growing"));
  remove_left();
  EXPECT_TRUE(is_on(0, located) && is_on(2, located));
  VersionList versions;
  const auto found = versions.look(settings.local, settings.deadline_ms);
  ASSERT_TRUE(found && found->size() == 1u);
  EXPECT_TRUE(found->front().readable());
  EXPECT_TRUE(is_on(1, located)) << "its units are good";
  EXPECT_FALSE(fs::exists(target(1) + "/" + located.manifest.directory + "/growing")) << "and it is no file of nobody";
}

TEST_F(Growing, who_does_not_know_takes_nothing_from_those_who_do) {
  Located located = grow();
  lose(located, target(1));
  EXPECT_EQ(complete(located), 1);
  remove_left({target(1)});  // the others are away now
  EXPECT_TRUE(is_on(0, located) && is_on(2, located));
  EXPECT_FALSE(is_on(1, located)) << "it has nothing that counts";
}

TEST_F(Growing, a_manifest_that_cannot_be_read_settles_nothing) {
  const Located left = grow();
  write(target(2) + "/" + left.manifest.directory + "/manifest", "torn");
  remove_left();
  EXPECT_FALSE(is_on(0, left));
  EXPECT_TRUE(is_on(2, left));
}

}  // namespace
}  // namespace holdfast::catalog
