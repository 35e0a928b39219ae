// What stands at a name, and what a listing shows of it.
#include "tree/look.hpp"

#include <dirent.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tree/list.hpp"
#include "unit/tree/forest.hpp"

namespace holdfast::tree {
namespace {

class Look : public Forest {
 protected:
  bool stands(const std::string& name, bool follow = true) const { return is_protected(AT_FDCWD, user(name).c_str(), follow); }
};

TEST_F(Look, plain_names_are_nobodys) {
  write(user("plain.dat"), std::string(1000, 'x'));
  fs::create_directory(user("directory"));
  for (const char* name : {"plain.dat", "directory", "absent"}) EXPECT_FALSE(stands(name)) << name;
}

TEST_F(Look, a_link_to_a_whole_copy_is_the_file) {
  ASSERT_TRUE(protect("out.dat", "content").ok());
  ASSERT_TRUE(fs::is_symlink(user("out.dat")));
  EXPECT_TRUE(stands("out.dat", false));
  EXPECT_TRUE(is_link_of_ours(AT_FDCWD, user("out.dat").c_str()));
  EXPECT_EQ(end_at_own_link(user("out.dat")), user("out.dat"));
}

TEST_F(Look, a_note_is_the_file_and_says_its_permissions) {
  targets(3, "rs:2+1");
  ASSERT_TRUE(protect("out.dat", "content").ok());
  mode_t mode = 0;
  EXPECT_TRUE(stands("out.dat", false));
  EXPECT_TRUE(is_stub_at(AT_FDCWD, user("out.dat").c_str(), &mode));
  EXPECT_EQ(mode & 0777, 0644u);
  EXPECT_FALSE(is_link_of_ours(AT_FDCWD, user("out.dat").c_str()));
}

TEST_F(Look, a_link_of_the_users_own_counts_where_it_is_followed) {
  ASSERT_TRUE(protect("out.dat", "content").ok());
  fs::create_symlink("out.dat", user("link"));
  fs::create_symlink("link", user("link2"));
  EXPECT_TRUE(stands("link2"));
  EXPECT_FALSE(stands("link2", false));
  EXPECT_EQ(end_at_own_link(user("link2")), user("out.dat"));
  fs::create_symlink("loop", user("loop"));
  EXPECT_FALSE(stands("loop"));
  EXPECT_EQ(end_at_own_link(user("loop")), "");
}

TEST_F(Look, a_file_whose_entry_is_lost_is_there_by_its_sidecar) {
  ASSERT_TRUE(protect("out.dat", "content").ok());
  fs::remove(user("out.dat"));
  errno = EBADF;
  EXPECT_TRUE(stands("out.dat", false));
  EXPECT_TRUE(is_protected_after(ENOENT, AT_FDCWD, user("out.dat").c_str()));
  EXPECT_FALSE(is_protected_after(EACCES, AT_FDCWD, user("out.dat").c_str()));
  EXPECT_FALSE(is_protected_after(ENOENT, AT_FDCWD, user("absent.dat").c_str()));
  EXPECT_EQ(errno, EBADF);
}

TEST_F(Look, a_listing_shows_files_and_nothing_beside_them) {
  ASSERT_TRUE(protect("out.dat", "content").ok());
  ASSERT_TRUE(protect("lost.dat", "content").ok());
  fs::remove(user("lost.dat"));
  fs::create_symlink("out.dat", user("link"));
  write(user(".hidden-by-the-user"), "");
  std::map<std::string, unsigned char> shown;
  DIR* const stream = opendir((root / "home").c_str());
  while (dirent* entry = readdir(stream))
    if (show_entry(dirfd(stream), entry->d_name, entry->d_type)) shown[entry->d_name] = entry->d_type;
  closedir(stream);
  EXPECT_EQ(shown, (std::map<std::string, unsigned char>{
                       {".", DT_DIR}, {"..", DT_DIR}, {".hidden-by-the-user", DT_REG}, {"link", DT_LNK}, {"lost.dat", DT_REG}, {"out.dat", DT_REG}}));
}

TEST_F(Look, a_walk_does_not_come_into_a_sidecar) {
  ASSERT_TRUE(protect("out.dat", "content").ok());
  const size_t begin = (root / "home").string().size();
  EXPECT_TRUE(may_be_hidden(".out.dat.holdfast"));
  EXPECT_FALSE(may_be_hidden("out.dat"));
  EXPECT_TRUE(is_hidden(sidecar("out.dat")));
  EXPECT_TRUE(passes_hidden(sidecar("out.dat") + "/manifest", begin));
  EXPECT_FALSE(passes_hidden(user("out.dat"), begin));
  EXPECT_FALSE(passes_hidden(sidecar("out.dat") + "/manifest", sidecar("out.dat").size()));  // where the walk began is the user's choice
}

}  // namespace
}  // namespace holdfast::tree
