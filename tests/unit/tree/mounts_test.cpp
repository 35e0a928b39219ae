// Which mount a path lies on, and whether other nodes see what lies there.
#include "tree/mounts.hpp"

#include <gtest/gtest.h>

namespace holdfast::tree {
namespace {

constexpr std::string_view cluster =
    "22 1 0:21 / / rw,relatime shared:1 - overlay overlay rw,lowerdir=/l\n"
    "23 22 0:5 / /dev rw - devtmpfs udev rw\n"
    "30 22 259:1 / /local rw,noatime shared:5 master:2 - xfs /dev/nvme0n1p1 rw\n"
    "31 22 0:40 / /home rw - nfs4 server:/export/home rw,vers=4.2\n"
    "32 22 0:41 / /scratch rw - lustre 10.0.0.1@o2ib:/scratch rw\n"
    "33 32 0:42 / /scratch/node rw - tmpfs tmpfs rw\n"
    "34 31 0:43 / /home/a\\040b\\134c rw - fuse.sshfs me@host: rw\n"
    "35 22 0:44 / /mnt/usb rw - fuseblk /dev/sdb1 rw\n"
    "36 22 0:45 / /mnt/new rw - quantumfs host:/volume rw\n"
    "37 22 0:46 / /mnt/own rw - quantumfs /dev/sdc rw\n";

bool is_shared(const Mounts& mounts, const std::string& path, const Settings& settings = {}) {
  return mounts.sharing_of(path, settings) == Sharing::shared;
}

TEST(Mounts, the_deepest_mount_on_the_way_says_it) {
  const Mounts mounts(cluster);
  EXPECT_FALSE(is_shared(mounts, "/tmp/out.dat"));
  EXPECT_FALSE(is_shared(mounts, "/local/out.dat"));
  EXPECT_TRUE(is_shared(mounts, "/home/me/out.dat"));
  EXPECT_TRUE(is_shared(mounts, "/scratch/out.dat"));
  EXPECT_FALSE(is_shared(mounts, "/scratch/node/out.dat"));
  EXPECT_TRUE(is_shared(mounts, "/scratch/nodes/out.dat"));  // begins alike, and lies beside it
  EXPECT_TRUE(is_shared(mounts, "/scratch"));
}

TEST(Mounts, blanks_and_backslashes_in_mount_points_are_read) {
  const Mounts mounts("1 0 0:1 / / rw - ext4 /dev/sda rw\n2 1 0:2 / /a\\040b\\134c rw - nfs h:/x rw\n");
  EXPECT_TRUE(is_shared(mounts, "/a b\\c/out.dat"));
  EXPECT_FALSE(is_shared(mounts, "/a b/out.dat"));
}

TEST(Mounts, a_mount_hides_what_was_mounted_below_it_before) {
  const Mounts mounts(
      "1 0 0:1 / / rw - ext4 /dev/sda rw\n"
      "2 1 0:2 / /data rw - ext4 /dev/sdb rw\n"
      "3 2 0:3 / /data/in rw - nfs h:/x rw\n"
      "4 2 0:4 / /data rw - tmpfs t rw\n"  // on top of 2: 3 is out of reach
      "5 4 0:5 / /data/other rw - ceph h:/ rw\n");
  EXPECT_FALSE(is_shared(mounts, "/data/in/out.dat"));
  EXPECT_TRUE(is_shared(mounts, "/data/other/out.dat"));
}

TEST(Mounts, a_root_that_is_mounted_over_counts_no_more) {
  const Mounts mounts("1 1 0:1 / / rw - rootfs rootfs rw\n2 1 0:2 / / rw - nfs h:/root rw\n");
  EXPECT_TRUE(is_shared(mounts, "/out.dat"));
}

TEST(Mounts, settings_say_better_for_their_directories_and_a_deeper_mount_better_still) {
  const Mounts mounts(cluster);
  Settings settings;
  settings.shared_mounts = {"/local/exported", "/tmp", "/mnt/own"};
  settings.local_mounts = {"/scratch", "/home/me/ram", "/local/exported/not"};
  EXPECT_TRUE(is_shared(mounts, "/local/exported/out.dat", settings));
  EXPECT_FALSE(is_shared(mounts, "/local/out.dat", settings));
  EXPECT_FALSE(is_shared(mounts, "/local/exported/not/out.dat", settings));
  EXPECT_TRUE(is_shared(mounts, "/tmp/a/out.dat", settings));
  EXPECT_TRUE(is_shared(mounts, "/mnt/own/out.dat", settings));
  EXPECT_FALSE(is_shared(mounts, "/scratch/out.dat", settings));
  EXPECT_FALSE(is_shared(mounts, "/home/me/ram/out.dat", settings));
  EXPECT_TRUE(is_shared(mounts, "/home/me/out.dat", settings));
  settings.shared_mounts = {"/"};
  EXPECT_TRUE(is_shared(mounts, "/opt/out.dat", settings));
  EXPECT_FALSE(is_shared(mounts, "/scratch/node/out.dat", settings));  // a mount of its own, deeper
}

TEST(Mounts, file_systems_in_user_space_and_unknown_ones_go_by_what_is_mounted) {
  const Mounts mounts(cluster);
  EXPECT_TRUE(is_shared(mounts, "/home/a b\\c/out.dat"));
  EXPECT_FALSE(is_shared(mounts, "/mnt/usb/out.dat"));
  EXPECT_TRUE(is_shared(mounts, "/mnt/new/out.dat"));
  EXPECT_FALSE(is_shared(mounts, "/mnt/own/out.dat"));
  for (const char* kind : {"ceph", "gpfs", "beegfs", "orangefs", "pvfs2", "cifs", "9p", "afs", "ocfs2", "gfs2", "fuse.glusterfs"})
    EXPECT_EQ(sharing_of_kind(kind, "none"), Sharing::shared) << kind;
  for (const char* kind : {"ext4", "btrfs", "zfs", "tmpfs", "ramfs", "overlay", "xfs", "f2fs"})
    EXPECT_EQ(sharing_of_kind(kind, "none"), Sharing::node_local) << kind;
}

TEST(Mounts, lines_that_are_no_mounts_are_left_out) {
  EXPECT_FALSE(Mounts("").known());
  EXPECT_FALSE(Mounts("nonsense\n\n1 0 0:1 / /\n1 0 0:1 / / rw - \n").known());
  const Mounts cut("1 0 0:1 / / rw - ext4 /dev/sda rw\n2 1 0:2 / /data rw - nf");
  EXPECT_FALSE(is_shared(cut, "/data/out.dat"));
}

TEST(Mounts, a_circle_of_parents_ends) {
  const Mounts mounts("1 0 0:1 / / rw - ext4 /dev/sda rw\n2 1 0:2 / /a rw - nfs h:/ rw\n1 2 0:3 / /a rw - ext4 /dev/sdb rw\n");
  (void)mounts.sharing_of("/a/b", {});
}

TEST(Mounts, this_machines_own_are_read) {
  Settings settings;
  settings.local_mounts = {"/"};
  EXPECT_EQ(sharing_of("/proc/out.dat", settings), Sharing::node_local);
  settings = {};
  settings.shared_mounts = {"/proc"};
  EXPECT_EQ(sharing_of("/proc/out.dat", settings), Sharing::shared);
}

TEST(Mounts, globs_mean_files_on_the_mounts_that_the_settings_name) {
  Settings settings;
  settings.shared_mounts = {"/proc"};
  EXPECT_TRUE(mount_is_meant("/proc/out.dat", settings));
  settings.mounts = "shared";
  EXPECT_TRUE(mount_is_meant("/proc/out.dat", settings));
  settings.mounts = "local";
  EXPECT_FALSE(mount_is_meant("/proc/out.dat", settings));
}

TEST(Mounts, the_number_of_the_file_system_serves_where_there_is_no_list) {
  EXPECT_EQ(sharing_of_magic(0x6969), Sharing::shared);
  EXPECT_EQ(sharing_of_magic(0xff534d42), Sharing::shared);
  EXPECT_EQ(sharing_of_magic(0xef53), Sharing::node_local);
}

}  // namespace
}  // namespace holdfast::tree
