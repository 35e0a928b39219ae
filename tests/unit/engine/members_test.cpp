// Which members are believed, and what a settle of one vouches for.
#include <cerrno>

#include "engine/manifest_store.hpp"
#include "unit/engine/scene.hpp"
#include "unit/target/forwarding_target.hpp"

namespace holdfast::sim {
namespace {

class OneMember : public testing::Test {
 protected:
  static constexpr const char* name = "d/sums";
  OneMember() { (void)target::make_memory_target(directory, "t")->make_directory("d"); }
  std::shared_ptr<target::MemoryDirectory> directory = std::make_shared<target::MemoryDirectory>();
};

// It is so by another's write, which power could take back.
TEST_F(OneMember, is_as_long_as_was_asked_for_once_it_is_settled) {
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    directory = std::make_shared<target::MemoryDirectory>();
    (void)target::make_memory_target(directory, "t")->make_directory("d");
    engine::MemberHandle other(target::make_memory_target(directory, "t")), handle(target::make_memory_target(directory, "t"));
    expect_ok(other.write(name, 0, Bytes(1000)));
    expect_ok(handle.grow(name, 1000));
    expect_ok(handle.settle(true));
    directory->power_loss(seed);
    auto left = directory->snapshot_object(name);
    ASSERT_TRUE(left.ok()) << "seed " << seed;
    EXPECT_EQ(left->size(), 1000u) << "seed " << seed;
  }
}

TEST_F(OneMember, keeps_a_manifest_that_was_written_with_the_data) {
  const Bytes manifest(3000, std::byte(7)), former(2000, std::byte(1));
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    directory = std::make_shared<target::MemoryDirectory>();
    (void)target::make_memory_target(directory, "t")->make_directory("d");
    engine::MemberHandle handle(target::make_memory_target(directory, "t"));
    expect_ok(handle.put("d/manifest", former, true));
    expect_ok(handle.write(name, 0, Bytes(1000)));
    handle.stage("d/manifest", "d/new.1", manifest);
    EXPECT_EQ(handle.target().get("d/manifest", 4000).value(), former) << "it has no name yet";
    expect_ok(handle.settle(true));
    expect_ok(handle.put("d/manifest", manifest, true));
    directory->power_loss(seed);
    EXPECT_EQ(target::make_memory_target(directory, "t")->get("d/manifest", 4000).value(), manifest) << "seed " << seed;
  }
}

TEST_F(OneMember, puts_another_manifest_than_the_one_that_was_written_early) {
  engine::MemberHandle handle(target::make_memory_target(directory, "t"));
  const Bytes early(3000, std::byte(7)), other(3000, std::byte(8));
  handle.stage("d/manifest", "d/new.1", early);
  expect_ok(handle.put("d/manifest", early, true), "before it was settled");
  handle.stage("d/manifest", "d/new.2", early);
  expect_ok(handle.settle(true));
  expect_ok(handle.put("d/manifest", other, true));
  EXPECT_EQ(handle.target().get("d/manifest", 4000).value(), other);
  EXPECT_EQ(handle.target().list("d").value(), std::vector<std::string>{"manifest"});
}

// As one of an agent's, but that each call is made by itself.
class FarTarget final : public target::ForwardingTarget {
 public:
  explicit FarTarget(std::shared_ptr<target::Target> inner) : ForwardingTarget(std::move(inner)) {}
  bool is_far() const override { return true; }
  Status write_together(std::span<const ObjectWrite> writes) override {
    if (full) return Status(Kind::no_space, "full", ENOSPC);
    return Target::write_together(writes);
  }
  bool full = false;
};

class FarMember : public OneMember {
 protected:
  static constexpr uint64_t most = 4000;
  void write_held(ByteView bytes) {
    iovec all{const_cast<std::byte*>(bytes.data()), bytes.size()};
    handle.hold_writes(true);
    expect_ok(handle.write_together({{name, 0, {all}}}));
    handle.hold_writes(false);
  }
  uint64_t there() const {
    const auto object = directory->snapshot_object(name);
    return object.ok() ? object->size() : 0;
  }
  std::shared_ptr<FarTarget> target = std::make_shared<FarTarget>(target::make_memory_target(directory, "t"));
  engine::MemberHandle handle{target};
};

TEST_F(FarMember, has_what_was_held_back_once_it_is_settled) {
  write_held(Bytes(1000, std::byte(1)));
  EXPECT_EQ(there(), 0u);
  expect_ok(handle.settle(true));
  directory->power_loss(1);
  EXPECT_EQ(there(), 1000u);
}

TEST_F(FarMember, has_what_was_held_back_before_anything_else_is_asked) {
  Bytes back(1000);
  write_held(Bytes(1000, std::byte(1)));
  expect_ok(handle.read(name, 0, back));
  EXPECT_EQ(back, Bytes(1000, std::byte(1)));
  write_held(Bytes(2000));
  expect_ok(handle.put("d/manifest", Bytes(10), false));
  EXPECT_EQ(there(), 2000u);
  write_held(Bytes(3000));
  (void)handle.target();
  EXPECT_EQ(there(), 3000u);
}

TEST_F(FarMember, holds_no_more_back_than_goes_in_one_call) {
  write_held(Bytes(engine::MemberHandle::most_held_bytes + 1));
  EXPECT_EQ(there(), engine::MemberHandle::most_held_bytes + 1);
}

TEST_F(FarMember, is_not_settled_where_what_was_held_back_had_no_room) {
  write_held(Bytes(1000));
  target->full = true;
  EXPECT_EQ(handle.settle(true).kind(), Kind::no_space);
  target->full = false;
  write_held(Bytes(1000));
  target->full = true;
  (void)handle.target();
  target->full = false;
  EXPECT_EQ(handle.settle(true).kind(), Kind::no_space);
}

TEST_F(FarMember, gives_what_was_read_ahead_once_and_in_its_turn_only) {
  const Bytes before(10, std::byte(1)), after(20, std::byte(2));
  expect_ok(target->put("d/manifest", before, false));
  handle.begin_ahead(1);
  auto lock = handle.lock_and_read_ahead(1, "d/lock", target::Hold::alone, "d/manifest", most);
  expect_ok(target->put("d/manifest", after, false));
  EXPECT_EQ(handle.get("d/manifest", most).value(), before);
  EXPECT_EQ(handle.get("d/manifest", most).value(), after);
  handle.read_ahead(1, "d/manifest", most);
  expect_ok(target->put("d/manifest", before, false));
  handle.begin_ahead(2);
  EXPECT_EQ(handle.get("d/manifest", most).value(), before) << "what the turn before had read";
  handle.read_ahead(1, "d/manifest", most);
  expect_ok(target->put("d/manifest", after, false));
  EXPECT_EQ(handle.get("d/manifest", most).value(), after) << "what came late of the turn before";
}

// Counts what is handed on to other nodes.
class CachedObject final : public target::ForwardingObject {
 public:
  CachedObject(std::shared_ptr<target::Object> inner, int& written_back) : ForwardingObject(std::move(inner)), written_back_(written_back) {}
  Status write_back() override { return ++written_back_, Status(); }

 private:
  int& written_back_;
};

TEST_F(OneMember, shows_other_nodes_what_a_fast_commit_settles) {
  int written_back = 0;
  auto watched = std::make_shared<WatchedTarget>(target::make_memory_target(directory, "t"), [](const std::string&, const std::string&) {});
  watched->caches = true;
  watched->wrap = [&](std::shared_ptr<target::Object> object) { return std::make_shared<CachedObject>(std::move(object), written_back); };
  engine::MemberHandle handle(watched);
  expect_ok(handle.write(name, 0, Bytes(1000)));
  EXPECT_EQ(written_back, 0);
  expect_ok(handle.settle(false));
  EXPECT_EQ(written_back, 1);
}

class Members : public testing::Test {
 protected:
  void SetUp() override {
    Opener file(world, true);
    file.write(0, 2 * row, 1);
    located = file->located();
    file.close();
  }
  World world{"rs:2+1"};
  const uint64_t row = world.identity.geometry.row_bytes();
  catalog::Located located;
};

// An old disk image, say: it answers, and it has a manifest, but one older than what was made durable everywhere.
TEST_F(Members, that_were_put_back_as_they_were_are_stale) {
  const auto before = world.directories[1]->snapshot();
  {
    Opener file(world);
    file.write(0, 2 * row, 2);
    file.close();
  }
  world.directories[1]->restore(before);
  Opener file(world);
  ASSERT_TRUE(file) << file.status.sentence();
  EXPECT_EQ(file->lost_members(), std::vector<int>{1});
  EXPECT_TRUE(file->located().manifest.members[1].stale);
  EXPECT_TRUE(all_are(file.read(0, 2 * row), 2));
  file.close();
}

// Another one commits while a reader, which holds no lock, asks one member after another.
TEST_F(Members, asked_before_and_after_a_commit_are_asked_again) {
  catalog::Located seen = world.locate();
  bool committed = false;
  auto watch = [&](const std::string& call, const std::string& name) {
    if (call != "get" || !name.ends_with("manifest") || std::exchange(committed, true)) return;
    Opener writer(world);
    writer.write(0, row, 2);
    writer.close();
  };
  seen.members[1].target = std::make_shared<WatchedTarget>(seen.members[1].target, watch);
  Opener reader(world, std::move(seen), false, false);
  ASSERT_TRUE(reader) << reader.status.sentence();
  EXPECT_TRUE(committed);
  EXPECT_EQ(reader->lost_members(), std::vector<int>());
}

// Removed behind the writer's back: it would go on writing to something that nobody finds again.
TEST_F(Members, whose_objects_are_gone_do_not_count_as_written) {
  Opener file(world);
  ASSERT_TRUE(file) << file.status.sentence();
  file.write(2 * row, row, 2);
  ASSERT_TRUE(world.directories[1]->remove_object(located.data_name(0)));
  file.write(3 * row, row, 3);
  file.sync();
  EXPECT_EQ(file->lost_members(), std::vector<int>{1});
  EXPECT_TRUE(file->located().manifest.members[1].stale);
}

// Its records are remembered, and all of the row has been replaced since.
TEST_F(Members, hold_no_damage_where_another_has_rewritten_a_row) {
  Opener reader(world, false, false);
  ASSERT_TRUE(all_are(reader.read(0, 2 * row), 1));
  {
    Opener writer(world);
    writer.write(0, 2 * row, 2);
    writer.close();
  }
  auto seen = reader.try_read(0, 2 * row);
  ASSERT_TRUE(seen.ok()) << seen.status().sentence();
  EXPECT_TRUE(all_are(*seen, 2));
}

// This process has no descriptor for what lies there.
class Unopened final : public target::ForwardingTarget {
 public:
  using ForwardingTarget::ForwardingTarget;
  Result<std::shared_ptr<target::Object>> open(const std::string&, target::OpenMode, target::Pages) override { return none(); }
  Result<Bytes> get(const std::string&, uint64_t) override { return none(); }
  static Status none() { return Status::from_errno(EMFILE, "a member"); }
};

class WithoutDescriptors : public testing::Test {
 protected:
  WithoutDescriptors() {
    Opener writer(world, true);
    writer.write(0, 10, 1);
    writer.close();
  }
  catalog::Located located(size_t unopened) {
    catalog::Located found = world.locate();
    for (size_t i = 0; i < unopened; ++i) found.members[i].target = std::make_shared<Unopened>(found.members[i].target);
    return found;
  }
  World world{"rs:2+1"};
};

// It was taken for lost, and the next manifest called it stale.
TEST_F(WithoutDescriptors, a_member_whose_manifest_cannot_be_opened_is_not_lost) {
  const catalog::Located found = located(1);
  engine::Members members(found);
  const auto reading = engine::read_manifest(members, found, world.settings);
  EXPECT_EQ(reading.status().to_errno(), EMFILE) << reading.status().sentence();
  EXPECT_TRUE(members.lost().none());
}

// The parentheses were empty.
TEST_F(WithoutDescriptors, a_record_that_cannot_be_read_says_what_each_member_answered) {
  Parts parts(located(3));
  const auto record = parts.records.get(0);
  EXPECT_EQ(record.status().to_errno(), EMFILE);
  EXPECT_NE(record.status().sentence().find("from any target: /t0 (a member: Too many open files); /t1 (a member: Too many"), std::string::npos)
      << record.status().sentence();
}

TEST_F(WithoutDescriptors, losses_that_are_the_process_s_own_are_told_as_such) {
  const catalog::Located found = located(0);
  engine::Members members(found), broken(found);
  for (int member : {0, 1}) {
    members.lose(member, Unopened::none());
    broken.lose(member, Status::from_errno(EIO, "a member"));
  }
  EXPECT_EQ(engine::check_losses(members, found.manifest).to_errno(), EMFILE);
  EXPECT_EQ(engine::check_losses(broken, found.manifest).to_errno(), EIO);
}

}  // namespace
}  // namespace holdfast::sim
