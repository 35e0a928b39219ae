// Removing a link of the user's own to a protected file (holdfast rm, MPI_File_delete), or renaming something over it, took the content of the file
// away, and left the file's entry and sidecar.
#include "unit/tree/forest.hpp"

namespace holdfast::tree {
namespace {

class LinkOfTheUsers : public Forest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(protect("file.dat", "content").ok());
    fs::create_symlink("file.dat", user("link.dat"));
    fs::create_symlink("link.dat", user("second.dat"));
  }
  bool is_link(const std::string& name) const { return fs::is_symlink(user(name)); }
};

TEST_F(LinkOfTheUsers, is_removed_alone) {
  for (const char* link : {"second.dat", "link.dat"}) {
    ASSERT_TRUE(catalog::remove(user(link), settings).ok());
    EXPECT_FALSE(is_link(link));
    EXPECT_EQ(content("file.dat"), "content");
  }
}

TEST_F(LinkOfTheUsers, is_removed_also_where_the_file_is_out_of_reach) {
  for (const std::string& target : settings.targets) fs::remove_all(target);
  EXPECT_TRUE(catalog::remove(user("link.dat"), settings).ok());
  EXPECT_FALSE(is_link("link.dat"));
}

TEST_F(LinkOfTheUsers, is_replaced_by_a_protected_file_that_gets_its_name) {
  ASSERT_TRUE(protect("other.dat", "other").ok());
  ASSERT_TRUE(rename("other.dat", "link.dat").status.ok());
  EXPECT_EQ(content("link.dat"), "other");
  EXPECT_EQ(content("file.dat"), "content");
}

TEST_F(LinkOfTheUsers, is_replaced_by_a_plain_file_that_gets_its_name) {
  write(user("plain.tmp"), "plain");
  ASSERT_TRUE(rename("plain.tmp", "link.dat").status.ok());
  EXPECT_EQ(content("link.dat"), "plain");
  EXPECT_EQ(content("file.dat"), "content");
}

// Somebody has put a link in the place of the file's own entry: that is an edit of the file, which goes as a whole.
TEST_F(LinkOfTheUsers, in_the_place_of_a_files_entry_is_no_name_of_another) {
  ASSERT_TRUE(protect("other.dat", "other").ok());
  fs::remove(user("file.dat"));
  fs::create_symlink("other.dat", user("file.dat"));
  ASSERT_TRUE(catalog::remove(user("file.dat"), settings).ok());
  EXPECT_FALSE(fs::exists(sidecar("file.dat")));
  EXPECT_EQ(content("other.dat"), "other");
}

}  // namespace
}  // namespace holdfast::tree
