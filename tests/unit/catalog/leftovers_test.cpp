// What makers and repairs that were cut short leave, and who finishes it.
#include "catalog/marker.hpp"
#include "engine/protected_file.hpp"
#include "engine/repair_file.hpp"
#include "unit/catalog/scene.hpp"

namespace holdfast::catalog {
namespace {

class Leftovers : public Scene {
 protected:
  Leftovers() {
    targets(3, "rs:2+1");
    settings.striping_unit = 4096;
  }
  std::string marker_of(int member) const { return target(member) + "/" + marker_name; }
  Marker marker(int member) const {
    const std::string text = read(marker_of(member));
    auto decoded = decode_marker(std::as_bytes(std::span(text.data(), text.size())));
    EXPECT_TRUE(decoded) << decoded.status().sentence();
    return decoded ? *decoded : Marker();
  }
};

// One marker is finished: were it lost, the others would say that there is no set, and nothing would lead to its files' other parts.
TEST_F(Leftovers, of_a_maker_that_was_killed_are_finished_before_a_file_is_made) {
  ASSERT_TRUE(open_or_create_set(settings.targets, settings));
  for (int member : {1, 2}) {
    Marker unfinished = marker(member);
    unfinished.epoch = 0;
    write(marker_of(member), encode(unfinished));
  }
  ASSERT_TRUE(create(user("f"), settings, 0644));
  for (int member = 0; member < 3; ++member) EXPECT_EQ(marker(member).epoch, 1u) << "of target " << member;
}

// The job that has the file open uses the member that is to be replaced: it keeps its place, in the file and in the set.
TEST_F(Leftovers, of_a_replacement_that_could_not_be_made_are_not_in_the_set) {
  auto located = create(user("f"), settings, 0644);
  ASSERT_TRUE(located) << located.status().sentence();
  auto alone = exchange::make_solo();
  auto job = engine::ProtectedFile::open(std::move(*located), {true, true, true}, settings, *alone);
  ASSERT_TRUE(job.ok()) << job.status().sentence();
  const Extent extent{0, 30000};
  ASSERT_TRUE((*job)->write({&extent, 1}, Bytes(extent.length, std::byte(7))).ok() && (*job)->sync().ok());
  fs::create_directory(root / "n");
  auto report = engine::repair_file(user("f"), {{target(0), root / "n"}}, false, settings, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().sentence();
  EXPECT_FALSE(report->left.empty());
  auto set = open_set({target(1)}, settings);
  ASSERT_TRUE(set) << set.status().sentence();
  EXPECT_EQ(set->members[0].path, target(0));
  EXPECT_EQ(set->epoch, 1u);
  EXPECT_TRUE((*job)->close().ok());
}

}  // namespace
}  // namespace holdfast::catalog
