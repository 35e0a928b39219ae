// Sizes that targets cannot hold: refused before anything is kept, and no target is lost by them.
#include "engine/object_limit.hpp"

#include <cerrno>

#include "unit/engine/scene.hpp"
#include "unit/target/forwarding_target.hpp"

namespace holdfast::sim {
namespace {

using layout::Placement;

constexpr uint64_t most_of_ext4 = (uint64_t{16} << 40) - 4096;
constexpr uint64_t beyond_all = uint64_t{1} << 62;

layout::Geometry geometry(const char* scheme, Placement placement, int members, bool single = false) {
  layout::Geometry g;
  g.scheme = *layout::Scheme::parse(scheme);
  g.placement = placement, g.members = members, g.single_directory = single, g.unit_bytes = 4096, g.block_bytes = 4096;
  return g;
}

TEST(ObjectLimit, is_of_the_rows_or_of_the_copy) {
  constexpr uint64_t most = 10 * 4096;
  const layout::Geometry separate = geometry("rs:2+1", Placement::separate, 3), copies = geometry("mirror:2", Placement::separate, 2);
  EXPECT_TRUE(engine::fits(separate, 20 * 4096, most));
  EXPECT_FALSE(engine::fits(separate, 20 * 4096 + 1, most));
  EXPECT_TRUE(engine::fits(copies, most, most));
  EXPECT_FALSE(engine::fits(copies, most + 1, most));
}

TEST(ObjectLimit, is_of_all_units_that_a_member_has_of_the_rows) {
  constexpr uint64_t most = 9 * 4096;
  const layout::Geometry spread = geometry("rs:2+1", Placement::interleaved, 6), together = geometry("rs:2+1", Placement::interleaved, 3, true);
  EXPECT_TRUE(engine::fits(spread, 18 * 2 * 4096, most));
  EXPECT_FALSE(engine::fits(spread, 18 * 2 * 4096 + 1, most));
  EXPECT_TRUE(engine::fits(together, 3 * 2 * 4096, most));
  EXPECT_FALSE(engine::fits(together, 3 * 2 * 4096 + 1, most));
}

// Takes no more bytes than a file system that has an end.
class BoundedObject final : public target::ForwardingObject {
 public:
  explicit BoundedObject(std::shared_ptr<target::Object> inner) : ForwardingObject(std::move(inner)) {}
  Status write(uint64_t offset, std::span<const iovec> from) override { return offset > most_of_ext4 ? too_large() : inner_->write(offset, from); }
  Status truncate(uint64_t size) override { return size > most_of_ext4 ? too_large() : inner_->truncate(size); }
  Status grow(uint64_t size) override { return size > most_of_ext4 ? too_large() : inner_->grow(size); }

 private:
  static Status too_large() { return Status::from_errno(EFBIG, "an object"); }
};

class OnBoundedTargets : public testing::Test {
 protected:
  void SetUp() override {
    catalog::Located located = world.locate();
    for (catalog::Member& member : located.members) {
      auto bounded = std::make_shared<WatchedTarget>(member.target, [](const std::string&, const std::string&) {});
      bounded->wrap = [](std::shared_ptr<target::Object> object) { return std::make_shared<BoundedObject>(std::move(object)); };
      member.target = bounded;
    }
    file.emplace(world, std::move(located), true);
    file->write(0, row, 1);
    file->sync();
  }
  void expect_refused(const Status& status) {
    EXPECT_EQ(status.to_errno(), EFBIG) << status.sentence();
    EXPECT_EQ((*file)->lost_members(), std::vector<int>());
    file->write(0, row, 2);
    file->sync();
    EXPECT_EQ((*file)->size().value(), row);
    EXPECT_TRUE(all_are(read_anew(world, 0, 2 * row), 2));
  }
  World world{"rs:2+1"};
  const uint64_t row = world.identity.geometry.row_bytes();
  std::optional<Opener> file;
};

TEST_F(OnBoundedTargets, a_size_beyond_them_is_the_callers_mistake) { expect_refused((*file)->set_size(beyond_all)); }
TEST_F(OnBoundedTargets, a_write_beyond_them_is_the_callers_mistake) { expect_refused(file->try_write(beyond_all, 1, 3)); }
TEST_F(OnBoundedTargets, a_collective_write_beyond_them_is_the_callers_mistake) {
  const Extent extent{beyond_all, 1};
  expect_refused((*file)->write_all({&extent, 1}, Bytes(1)));
}

TEST_F(OnBoundedTargets, they_are_found_to_hold_all_that_they_do) {
  const catalog::Located& located = (*file)->located();
  engine::Members members(located);
  EXPECT_EQ(engine::largest_object_bytes(members, located), most_of_ext4);
  for (const auto& directory : world.directories) {
    const auto names = target::make_memory_target(directory, "t")->list(located.manifest.directory);
    ASSERT_TRUE(names.ok());
    for (const std::string& name : *names) EXPECT_FALSE(name.starts_with("probe.")) << name;
  }
}

}  // namespace
}  // namespace holdfast::sim
