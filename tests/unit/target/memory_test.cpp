#include "target/memory.hpp"

#include <gtest/gtest.h>

#include <set>

#include <cstring>

namespace holdfast::target::memory_tests {
namespace {

Bytes filled(size_t count, int value) { return Bytes(count, static_cast<std::byte>(value)); }
Status write(Object& object, uint64_t offset, ByteView from) {
  const iovec one{const_cast<std::byte*>(from.data()), from.size()};
  return object.write(offset, std::span<const iovec>(&one, 1));
}
Bytes content(const std::shared_ptr<Target>& target, const std::string& name) { return target->get(name, 1 << 30).value(); }

class Memory : public testing::Test {
 protected:
  std::shared_ptr<MemoryDirectory> directory_ = std::make_shared<MemoryDirectory>();
  std::shared_ptr<Target> target_ = make_memory_target(directory_, "t");
};

TEST_F(Memory, what_was_synced_survives_every_power_loss) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    auto object = target_->open("o", OpenMode::create).value();
    ASSERT_TRUE(write(*object, 100, filled(3000, seed)).ok());
    ASSERT_TRUE(object->sync().ok());
    ASSERT_TRUE(target_->put("m", filled(10, seed), true).ok());
    directory_->power_loss(seed);
    Bytes left = content(target_, "o");
    ASSERT_EQ(left.size(), 3100u);
    EXPECT_EQ(Bytes(left.begin() + 100, left.end()), filled(3000, seed));
    EXPECT_EQ(content(target_, "m"), filled(10, seed));
  }
}

TEST_F(Memory, unsynced_sectors_are_old_or_new_and_seeds_bring_all_mixtures) {
  bool all_old = false, all_new = false, torn = false;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    {
      auto object = target_->open("o", OpenMode::create).value();
      ASSERT_TRUE(object->truncate(0).ok());
      ASSERT_TRUE(write(*object, 0, filled(4096, 1)).ok());
      ASSERT_TRUE(object->sync().ok());
      ASSERT_TRUE(write(*object, 0, filled(4096, 2)).ok());
    }
    directory_->power_loss(seed);
    Bytes left = content(target_, "o");
    ASSERT_EQ(left.size(), 4096u);
    int news = 0;
    for (int sector = 0; sector < 8; ++sector) {
      Bytes part(left.begin() + sector * 512, left.begin() + (sector + 1) * 512);
      ASSERT_TRUE(part == filled(512, 1) || part == filled(512, 2));
      news += part == filled(512, 2);
    }
    all_old |= news == 0;
    all_new |= news == 8;
    torn |= news > 0 && news < 8;
  }
  EXPECT_TRUE(all_old && all_new && torn);
}

TEST_F(Memory, an_unsynced_put_is_the_old_or_the_new_one_and_unsynced_names_may_be_gone_or_back) {
  int old_ones = 0, new_ones = 0, vanished = 0, removed_came_back = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    directory_->restore({});
    ASSERT_TRUE(target_->put("m", filled(10, 1), true).ok());
    ASSERT_TRUE(target_->put("r", filled(10, 1), true).ok());
    ASSERT_TRUE(target_->put("m", filled(20, 2), false).ok());
    ASSERT_TRUE(target_->remove("r").ok());
    ASSERT_TRUE(target_->open("fresh", OpenMode::create).ok());
    directory_->power_loss(seed);
    Bytes left = content(target_, "m");
    ASSERT_TRUE(left == filled(10, 1) || left == filled(20, 2));
    (left == filled(10, 1) ? old_ones : new_ones)++;
    vanished += !target_->open("fresh", OpenMode::read).ok();
    removed_came_back += target_->open("r", OpenMode::read).ok();
  }
  for (int count : {old_ones, new_ones, vanished, removed_came_back}) {
    EXPECT_GT(count, 10);
    EXPECT_LT(count, 90);
  }
}

TEST_F(Memory, the_same_seed_leaves_the_same) {
  auto run = [](uint64_t seed) {
    auto directory = std::make_shared<MemoryDirectory>();
    auto target = make_memory_target(directory, "t");
    for (int i = 0; i < 5; ++i) {
      auto object = target->open("o" + std::to_string(i), OpenMode::create).value();
      EXPECT_TRUE(object->sync().ok());
      EXPECT_TRUE(write(*object, 300, filled(9000, 1)).ok());
    }
    directory->power_loss(seed);
    std::vector<Bytes> all;
    for (const std::string& name : directory->object_names()) all.push_back(content(target, name));
    return all;
  };
  EXPECT_EQ(run(5), run(5));
  EXPECT_NE(run(5), run(6));
}

TEST_F(Memory, handles_and_locks_of_before_are_dead_after_a_power_loss) {
  auto object = target_->open("o", OpenMode::create).value();
  ASSERT_TRUE(object->sync().ok());
  auto held = target_->try_lock("lock").value();
  directory_->power_loss(1);
  EXPECT_EQ(object->still_there().kind(), Kind::lost);
  EXPECT_TRUE(write(*object, 0, filled(10, 1)).ok());
  EXPECT_TRUE(content(target_, "o").empty());
  auto second = target_->try_lock("lock");
  ASSERT_TRUE(second.ok());
  held.reset();  // must not take the new holder's lock away
  EXPECT_EQ(target_->try_lock("lock").status().kind(), Kind::busy);
}

TEST_F(Memory, an_old_copy_of_all_or_of_one_object_can_be_put_back) {
  ASSERT_TRUE(target_->make_directory("d").ok());
  auto object = target_->open("d/o", OpenMode::create).value();
  ASSERT_TRUE(write(*object, 0, filled(10, 1)).ok());
  auto all = directory_->snapshot();
  auto one = directory_->snapshot_object("d/o").value();
  ASSERT_TRUE(write(*object, 0, filled(10, 2)).ok());
  ASSERT_TRUE(target_->put("later", filled(1, 1), true).ok());
  directory_->restore_object("d/o", one);
  EXPECT_EQ(content(target_, "d/o"), filled(10, 1));
  EXPECT_TRUE(target_->get("later", 9).ok());
  directory_->restore(all);
  EXPECT_EQ(content(target_, "d/o"), filled(10, 1));
  EXPECT_EQ(target_->get("later", 9).status().kind(), Kind::not_found);
  EXPECT_EQ(object->still_there().kind(), Kind::lost);
}

TEST_F(Memory, damage_hits_exactly_what_it_names) {
  ASSERT_TRUE(target_->put("m", filled(10, 0), true).ok());
  EXPECT_TRUE(directory_->flip_bit("m", 8 * 3 + 1));
  Bytes expected = filled(10, 0);
  expected[3] = std::byte{2};
  EXPECT_EQ(content(target_, "m"), expected);
  EXPECT_FALSE(directory_->flip_bit("m", 80));
  EXPECT_FALSE(directory_->flip_bit("none", 0));
  EXPECT_TRUE(directory_->truncate_object("m", 2));
  EXPECT_EQ(content(target_, "m"), filled(2, 0));
  EXPECT_TRUE(directory_->remove_object("m"));
  EXPECT_FALSE(directory_->remove_object("m"));
}

TEST_F(Memory, an_unmounted_one_is_lost_and_a_full_one_says_so) {
  directory_->set_mounted(false);
  EXPECT_EQ(target_->check_identity().kind(), Kind::lost);
  directory_->set_mounted(true);
  EXPECT_TRUE(target_->check_identity().ok());
  directory_->set_capacity(100000);
  auto object = target_->open("o", OpenMode::create).value();
  EXPECT_TRUE(write(*object, 0, filled(50000, 1)).ok());
  EXPECT_EQ(write(*object, 50000, filled(60000, 1)).kind(), Kind::no_space);
  EXPECT_TRUE(write(*object, 0, filled(50000, 2)).ok()) << "overwriting needs no room";
  EXPECT_EQ(target_->put("m", filled(90000, 1), false).kind(), Kind::no_space);
}

// What the kernel's locks are on many network mounts, and what names make of them.
TEST(MemoryNodes, do_not_keep_each_other_out_by_locks_alone) {
  auto storage = std::make_shared<MemoryDirectory>();
  auto one = make_memory_target(storage, "one", {1}), two = make_memory_target(storage, "two", {2});
  auto held = one->try_lock("lock");
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(make_memory_target(storage, "one", {1})->try_lock("lock").status().kind(), Kind::busy);
  EXPECT_TRUE(two->try_lock("lock").ok());
}

TEST(MemoryNodes, keep_each_other_out_by_names_and_a_dead_one_nobody) {
  auto storage = std::make_shared<MemoryDirectory>();
  std::set<int> dead;
  int holds = 0;
  const auto process = [&](int number) {
    return Processes{[&holds, number] {
                       LockOwner owner;
                       owner.process = number;
                       owner.number = std::to_string(++holds);
                       return owner;
                     },
                     [&dead](const LockOwner& owner) { return dead.count(owner.process) > 0; }};
  };
  auto one = make_memory_target(storage, "one", {1, process(1)}), two = make_memory_target(storage, "two", {2, process(2)});
  auto shared = one->try_lock("writer.5", Hold::shared);
  ASSERT_TRUE(shared.ok());
  EXPECT_EQ(two->try_lock("writer.5", Hold::probe).status().kind(), Kind::busy);
  EXPECT_TRUE(two->try_lock("writer.5", Hold::shared).ok());
  auto held = two->try_lock("lock");
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(one->try_lock("lock").status().kind(), Kind::busy);
  dead.insert(2);
  EXPECT_TRUE(one->try_lock("lock").ok());
}

}  // namespace
}  // namespace holdfast::target::memory_tests
