#include "target/lock_reach.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/directory.hpp"
#include "unit/target/directory_fixture.hpp"

namespace holdfast::target {
namespace {

TEST(LockReach, storage_of_the_node_itself_needs_no_names) {
  for (uint64_t magic : {0xef53ull, 0x58465342ull, 0x9123683eull, 0x01021994ull, 0x2fc12fc1ull, 0x794c7630ull})
    EXPECT_EQ(reach_of_magic(magic), Reach::all_nodes);
}

TEST(LockReach, what_nobody_here_knows_stops_at_the_node) {
  EXPECT_EQ(reach_of_magic(0x19830326), Reach::one_node);  // BeeGFS
  EXPECT_EQ(reach_of_magic(0x12345678), Reach::one_node);
  EXPECT_FALSE(locks_reach_all_nodes("weirdfs", "rw"));
}

TEST(Caches, of_nodes_are_their_own_but_where_the_file_system_keeps_them_true) {
  for (uint64_t magic : {0xef53ull, 0x58465342ull, 0x01021994ull}) EXPECT_FALSE(caches_by_node(magic));                // the node's own storage
  for (uint64_t magic : {0x0bd00bd0ull, 0x00c36400ull, 0x47504653ull}) EXPECT_FALSE(caches_by_node(magic));            // Lustre, CephFS, GPFS
  for (uint64_t magic : {0x6969ull, 0x65735546ull, 0xff534d42ull, 0x19830326ull}) EXPECT_TRUE(caches_by_node(magic));  // NFS, FUSE, SMB, BeeGFS
  EXPECT_TRUE(caches_by_node(0x12345678));
}

TEST(LockReach, nfs_and_lustre_say_it_in_their_mounts) {
  EXPECT_TRUE(locks_reach_all_nodes("nfs4", "rw,vers=4.2,hard,local_lock=none"));
  EXPECT_TRUE(locks_reach_all_nodes("nfs", "rw,vers=3,local_lock=none"));
  EXPECT_FALSE(locks_reach_all_nodes("nfs", "rw,vers=3,nolock,local_lock=all"));
  EXPECT_FALSE(locks_reach_all_nodes("nfs", "rw,local_lock=posix"));
  EXPECT_TRUE(locks_reach_all_nodes("lustre", "rw,flock,user_xattr"));
  EXPECT_FALSE(locks_reach_all_nodes("lustre", "rw,localflock"));
  EXPECT_FALSE(locks_reach_all_nodes("lustre", "rw,noflock"));
  EXPECT_FALSE(locks_reach_all_nodes("lustre", "rw,lazystatfs"));
}

TEST(LockReach, of_fuse_only_those_whose_servers_lock) {
  EXPECT_TRUE(locks_reach_all_nodes("fuse.glusterfs", "rw"));
  EXPECT_TRUE(locks_reach_all_nodes("fuse.ceph-fuse", "rw"));
  EXPECT_TRUE(locks_reach_all_nodes("fuseblk", "rw"));
  EXPECT_FALSE(locks_reach_all_nodes("fuse.sshfs", "rw"));
  EXPECT_FALSE(locks_reach_all_nodes("fuse", "rw"));
}

// The way is the process's: put back whatever a test says.
class LocksOfADirectory : public testing::Test {
 protected:
  ~LocksOfADirectory() override { choose_lock_way(LockWay::automatic); }
  std::shared_ptr<Target> handle() { return open_directory(directory_.path()).value(); }
  TemporaryDirectory directory_;
};

TEST_F(LocksOfADirectory, leave_names_only_where_these_are_asked_for) {
  auto target = handle();
  {
    auto held = target->try_lock("lock");
    ASSERT_TRUE(held.ok());
    EXPECT_EQ(target->list("")->size(), 1u);
  }
  choose_lock_way("names");
  {
    auto held = target->try_lock("lock");
    ASSERT_TRUE(held.ok()) << held.status().sentence();
    EXPECT_EQ(target->list("")->size(), 3u);  // lock, lock.held, lock.claim.NUMBER
    EXPECT_EQ(handle()->try_lock("lock").status().kind(), Kind::busy);
  }
  EXPECT_EQ(target->list("")->size(), 1u);
}

TEST_F(LocksOfADirectory, by_name_are_let_go_with_the_process_that_is_killed) {
  choose_lock_way("names");
  const pid_t child = fork();
  if (child == 0) {
    auto held = handle()->try_lock("lock");
    _exit(held.ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(handle()->list("")->size(), 3u);
  EXPECT_TRUE(handle()->try_lock("lock").ok());
}

TEST_F(LocksOfADirectory, by_name_are_not_let_go_by_a_forked_child) {
  choose_lock_way("names");
  auto held = handle()->try_lock("lock");
  ASSERT_TRUE(held.ok());
  const pid_t child = fork();
  if (child == 0) {
    held->reset();
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(handle()->list("")->size(), 3u);
}

}  // namespace
}  // namespace holdfast::target
