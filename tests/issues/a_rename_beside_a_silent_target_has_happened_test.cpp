// A target fell silent while a file was renamed: it could not be told of the new path. The rename had happened by then, and was said to have failed. A file that was
// removed while a process had it open stayed under a hidden name, since that process looked for it under the one of before.
#include <gtest/gtest.h>

#include "catalog/catalog.hpp"
#include "catalog/hidden_names.hpp"
#include "file/protected_origin.hpp"
#include "sim/openers_site.hpp"
#include "sim/whole_file.hpp"

namespace holdfast::sim {
namespace {

constexpr const char *from = "/data/a/f", *to = "/data/b/f";

// The file, and a target that falls silent at its call of that number, counted from when the file was written.
struct SilentTarget {
  SilentTarget(const char* protect, const char* placement, int place, int64_t call) : place(place) {
    for (const char* directory : {"/data/a", "/data/b"}) EXPECT_EQ(site.mkdirat(AT_FDCWD, directory, 0755), 0);
    settings = site.add_set(protect, {"/t0", "/t1", "/t2"});
    settings.placement = placement;
    write_whole(from, content, settings, true);
    site.gate->fail_later(place, call, Kind::timed_out);
  }
  bool fell_silent() { return site.gate->failing(place); }
  std::optional<Bytes> read(const char* path) { return read_whole(path, content.size() + 1, settings); }

  const int place;
  Site site{1};
  const catalog::ReplacedEnvironment in_site{site};
  const Bytes content = Bytes(9000, std::byte('c'));
  Settings settings;
};

void expect_at_its_name_alone(SilentTarget& world, const char* name, const char* other) {
  EXPECT_EQ(world.read(name), world.content);
  EXPECT_EQ(catalog::kind_of(other), catalog::PathKind::absent);
}

bool renames(SilentTarget& world) {
  const bool moved = catalog::rename(from, to, world.settings).ok();
  const bool fell_silent = world.fell_silent();
  const char *const name = moved ? to : from, *const other = moved ? from : to;
  expect_at_its_name_alone(world, name, other);
  world.site.heal(world.place);
  expect_at_its_name_alone(world, name, other);
  EXPECT_TRUE(catalog::remove(name, world.settings).ok());
  EXPECT_EQ(catalog::kind_of(name), catalog::PathKind::absent);
  return fell_silent;
}

bool removes_while_it_is_open(SilentTarget& world) {
  const std::string id = catalog::locate(from, world.settings)->manifest.file_id, hidden = "/data/a/" + catalog::removed_name(id);
  file::ProtectedOrigin origin(id, from, world.settings);
  const bool removed = origin.unlink().ok();
  const bool fell_silent = world.fell_silent();
  world.site.heal(world.place);
  expect_at_its_name_alone(world, removed ? hidden.c_str() : from, removed ? from : hidden.c_str());
  origin.remove_if_unlinked();
  EXPECT_EQ(catalog::kind_of(hidden), catalog::PathKind::absent);
  return fell_silent;
}

void sweep(bool (*does)(SilentTarget&)) {
  for (const auto& [protect, placement] : {std::pair{"mirror:2", "separate"}, {"rs:2+1", "interleaved"}})
    for (int place = 0; place < 3; ++place) {
      int64_t call = 1;
      for (bool fell_silent = true; fell_silent && call < most_calls; ++call) {
        SCOPED_TRACE(std::string(protect) + ", target " + std::to_string(place) + ", call " + std::to_string(call));
        SilentTarget world(protect, placement, place, call);
        fell_silent = does(world);
        if (testing::Test::HasFailure()) return;
      }
      EXPECT_GT(call, 4) << "the target is hardly asked";
    }
}

TEST(SilentTarget, leaves_a_file_that_is_renamed_at_the_name_that_is_said) { sweep(renames); }

TEST(SilentTarget, leaves_nothing_of_what_was_removed_while_it_was_open) { sweep(removes_while_it_is_open); }

}  // namespace
}  // namespace holdfast::sim
