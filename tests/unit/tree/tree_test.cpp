// stat, unlink, truncate, rename: what they come to, and what there is to say.
#include "tree/tree.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "unit/tree/forest.hpp"

namespace holdfast::tree {
namespace {

class TreeOfNames : public Forest {
 protected:
  static void expect_done(const Answer& answer) {
    EXPECT_FALSE(answer.natively);
    EXPECT_TRUE(answer.status.ok()) << answer.status.sentence();
    EXPECT_TRUE(answer.lines.empty());
  }
  static void expect_refused(const Answer& answer, int error) {
    EXPECT_FALSE(answer.natively);
    EXPECT_EQ(answer.status.to_errno(), error);
    EXPECT_TRUE(answer.lines.empty());
  }
};

// ---------------------------------------------------------------- stat

TEST_F(TreeOfNames, a_file_that_nobody_has_open_is_as_its_manifest_says) {
  ASSERT_TRUE(protect("out.dat", "content").ok());
  const auto seen = tree.stat(user("out.dat"), false);
  ASSERT_TRUE(seen.ok());
  EXPECT_EQ(seen->size, 7u);
  EXPECT_NE(seen->is.inode, 0u);
  EXPECT_EQ(seen->is.inode, tree.stat(user("out.dat"), false)->is.inode);
  EXPECT_EQ(tree.stat(user("out.dat"), true)->is.inode, 0u);  // as the copy's entry says
  EXPECT_EQ(tree.stat(user("absent.dat"), false).status().kind(), Kind::not_found);
}

TEST_F(TreeOfNames, an_open_file_is_as_those_see_it_who_have_it_open) {
  ASSERT_TRUE(protect("out.dat", "content").ok());
  const auto file = open("out.dat");
  file->bytes = 4711;
  file->copy = {.device = 8, .inode = 15};
  file->written = 42;
  const auto seen = tree.stat(user("out.dat"), false);
  ASSERT_TRUE(seen.ok());
  EXPECT_EQ(seen->size, 4711u);
  EXPECT_EQ(seen->is.device, 8u);
  EXPECT_EQ(seen->is.inode, 15u);
  EXPECT_EQ(seen->written_ns, 42);
}

TEST_F(TreeOfNames, a_lost_entry_is_described_by_what_has_its_owner_and_times) {
  ASSERT_TRUE(protect("out.dat", "content").ok());
  EXPECT_EQ(in_place_of_lost_entry(user("out.dat")), sidecar("out.dat") + "/manifest");
  EXPECT_TRUE(fs::exists(in_place_of_lost_entry(user("out.dat"))));
}

// ---------------------------------------------------------------- unlink, truncate

TEST_F(TreeOfNames, an_unlink_takes_the_whole_file) {
  ASSERT_TRUE(protect("out.dat", "content").ok());
  expect_done(tree.unlink(user("out.dat")));
  EXPECT_TRUE(entries().empty());
  for (const std::string& target : settings.targets)
    for (const auto& entry : fs::directory_iterator(target)) EXPECT_FALSE(entry.path().filename().string().starts_with("out.dat"));
}

TEST_F(TreeOfNames, an_unlink_of_an_open_file_is_left_to_those_who_have_it_open) {
  ASSERT_TRUE(protect("out.dat", "content").ok());
  const auto file = open("out.dat");
  expect_done(tree.unlink(user("out.dat")));
  EXPECT_EQ(file->unlinks, 1);
  EXPECT_EQ(content("out.dat"), "content");
}

TEST_F(TreeOfNames, what_leads_nowhere_is_unlinked_natively) {
  fs::create_directory(sidecar("out.dat"));
  EXPECT_TRUE(tree.unlink(user("out.dat")).natively);
}

TEST_F(TreeOfNames, a_failure_is_said_with_its_name) {
  ASSERT_TRUE(protect("out.dat", "content").ok());
  open("out.dat")->answer = Status(Kind::io, "a target is on fire", EIO);
  const Answer answer = tree.unlink(user("out.dat"));
  EXPECT_EQ(answer.status.to_errno(), EIO);
  ASSERT_EQ(answer.lines.size(), 1u);
  EXPECT_EQ(answer.lines[0].path, user("out.dat"));
  EXPECT_EQ(answer.lines[0].sentence, "a target is on fire");
}

TEST_F(TreeOfNames, a_file_is_cut_and_extended) {
  ASSERT_TRUE(protect("out.dat", "content").ok());
  expect_done(tree.truncate(user("out.dat"), 3));
  EXPECT_EQ(content("out.dat"), "con");
  expect_done(tree.truncate(user("out.dat"), 5));
  EXPECT_EQ(content("out.dat"), std::string("con\0\0", 5));
  expect_refused(tree.truncate(user("absent.dat"), 3), ENOENT);
}

// ---------------------------------------------------------------- rename

TEST_F(TreeOfNames, names_that_are_nobodys_are_renamed_natively) {
  write(user("a.txt"), "plain");
  const Answer answer = rename("a.txt", "b.txt");
  EXPECT_TRUE(answer.natively);
  EXPECT_TRUE(fs::exists(user("a.txt")));
  EXPECT_TRUE(rename("absent.txt", "b.dat").natively);
  fs::create_directory(user("directory"));
  EXPECT_TRUE(rename("directory", "other.dat").natively);
}

TEST_F(TreeOfNames, a_protected_file_moves_with_all_that_is_its_own) {
  ASSERT_TRUE(protect("a.dat", "content").ok());
  expect_done(rename("a.dat", "b.txt"));
  EXPECT_EQ(content("b.txt"), "content");
  EXPECT_EQ(entries(), (std::set<std::string>{"b.txt", ".b.txt.holdfast"}));
}

TEST_F(TreeOfNames, a_protected_file_takes_the_place_of_whatever_was_there) {
  ASSERT_TRUE(protect("a.dat", "new").ok());
  ASSERT_TRUE(protect("b.dat", "old").ok());
  write(user("c.txt"), "plain");
  expect_done(rename("a.dat", "b.dat"));
  EXPECT_EQ(content("b.dat"), "new");
  expect_done(rename("b.dat", "c.txt"));
  EXPECT_EQ(content("c.txt"), "new");
  EXPECT_EQ(entries(), (std::set<std::string>{"c.txt", ".c.txt.holdfast"}));
}

TEST_F(TreeOfNames, a_file_renamed_to_itself_stays) {
  ASSERT_TRUE(protect("a.dat", "content").ok());
  expect_done(rename("a.dat", "a.dat"));
  EXPECT_EQ(content("a.dat"), "content");
}

TEST_F(TreeOfNames, open_files_are_told_of_their_names) {
  ASSERT_TRUE(protect("a.dat", "new").ok());
  ASSERT_TRUE(protect("b.dat", "old").ok());
  const auto moves = open("a.dat"), goes = open("b.dat");
  expect_done(rename("a.dat", "b.dat"));
  EXPECT_EQ(goes->unlinks, 1);
  EXPECT_EQ(moves->renamed_to, user("b.dat"));
}

TEST_F(TreeOfNames, a_rename_that_would_replace_or_exchange_is_refused_where_it_was_said) {
  ASSERT_TRUE(protect("a.dat", "content").ok());
  write(user("b.txt"), "plain");
  write(user("c.dat"), "plain");
  expect_refused(rename("a.dat", "b.txt", {.keeps_existing = true}), EEXIST);
  expect_refused(rename("b.txt", "a.dat", {.keeps_existing = true}), EEXIST);
  expect_refused(rename("b.txt", "c.dat", {.keeps_existing = true}), EEXIST);
  expect_refused(rename("a.dat", "b.txt", {.does_more = true}), EINVAL);
  expect_refused(rename("absent.txt", "a.dat"), ENOENT);
  EXPECT_TRUE(rename("b.txt", "c.dat", {.does_more = true}).natively);
  EXPECT_EQ(content("a.dat"), "content");
}

TEST_F(TreeOfNames, a_plain_file_that_gets_a_name_of_the_policy_is_protected) {
  write(user("a.tmp"), "content");
  ASSERT_EQ(::chmod(user("a.tmp").c_str(), 0600), 0);
  expect_done(rename("a.tmp", "a.dat"));
  EXPECT_EQ(content("a.dat"), "content");
  EXPECT_EQ(entries(), (std::set<std::string>{"a.dat", ".a.dat.holdfast"}));
}

TEST_F(TreeOfNames, a_plain_file_over_a_protected_one_is_protected_as_that_was) {
  ASSERT_TRUE(protect("old.txt", "old").ok());
  settings.protect.reset();
  settings.targets.clear();
  write(user("new.txt"), "new");
  expect_done(rename("new.txt", "old.txt"));
  EXPECT_EQ(content("old.txt"), "new");
  EXPECT_EQ(catalog::locate(user("old.txt"), settings)->manifest.geometry.scheme.name(), "mirror:2");
  EXPECT_EQ(entries(), (std::set<std::string>{"old.txt", ".old.txt.holdfast"}));
}

TEST_F(TreeOfNames, what_the_user_says_counts_before_what_is_there_where_it_is_asked_for) {
  settings.striping_unit = 128 << 10;
  ASSERT_TRUE(protect("out.dat", "content").ok());
  Settings said;
  said.striping_unit = 1 << 20;
  said.placement = "interleaved";
  EXPECT_EQ(*made_like(user("out.dat"), said).striping_unit, 128u << 10);
  EXPECT_EQ(*made_like(user("out.dat"), said).placement, "separate");
  const Settings heeded = made_like(user("out.dat"), said, true);
  EXPECT_EQ(*heeded.protect, "mirror:2");
  EXPECT_EQ(*heeded.striping_unit, 1u << 20);
  EXPECT_EQ(*heeded.placement, "interleaved");
  EXPECT_EQ(heeded.targets, settings.targets);
  said.targets = {"/elsewhere"};
  EXPECT_EQ(made_like(user("out.dat"), said, true).targets, said.targets);
  EXPECT_FALSE(made_like(user("absent.dat"), Settings()).protect);
}

TEST_F(TreeOfNames, a_plain_file_that_is_being_written_stays_plain_with_a_line) {
  write(user("a.tmp"), "content");
  const raw::Fd writer(raw::openat(AT_FDCWD, user("a.tmp").c_str(), O_WRONLY | O_CLOEXEC));
  openings.written = true;  // asked where the file system grants no lease
  const Answer answer = rename("a.tmp", "a.dat");
  EXPECT_TRUE(answer.natively);
  ASSERT_EQ(answer.lines.size(), 1u);
  EXPECT_EQ(answer.lines[0].path, user("a.dat"));
  EXPECT_NE(answer.lines[0].sentence.find("so it stays plain"), std::string::npos);
  EXPECT_EQ(entries(), (std::set<std::string>{"a.tmp"}));
}

TEST_F(TreeOfNames, a_conversion_that_fails_leaves_both_files_as_they_were) {
  ASSERT_TRUE(protect("a.dat", "old").ok());
  write(user("a.tmp"), "new");
  settings.protect = "mirror:3";  // of two targets
  const Answer answer = rename("a.tmp", "a.dat");
  EXPECT_FALSE(answer.natively);
  EXPECT_FALSE(answer.status.ok());
  ASSERT_EQ(answer.lines.size(), 1u);
  EXPECT_EQ(answer.lines[0].path, user("a.dat"));
  EXPECT_EQ(read(user("a.tmp")), "new");
  EXPECT_EQ(content("a.dat"), "old");
  EXPECT_EQ(entries(), (std::set<std::string>{"a.dat", ".a.dat.holdfast", "a.tmp"}));
}

TEST_F(TreeOfNames, what_is_no_plain_file_takes_the_place_of_a_protected_one_as_natively) {
  ASSERT_TRUE(protect("a.dat", "old").ok());
  fs::create_symlink("somewhere", user("link"));
  expect_done(rename("link", "a.dat"));
  EXPECT_EQ(entries(), (std::set<std::string>{"a.dat"}));
  EXPECT_TRUE(fs::is_symlink(user("a.dat")));
}

TEST_F(TreeOfNames, a_rename_that_the_kernel_refuses_leaves_what_was_there) {
  ASSERT_TRUE(protect("a.dat", "old").ok());
  fs::create_symlink("somewhere", user("link"));
  native_error = EXDEV;
  expect_refused(rename("link", "a.dat"), EXDEV);
  EXPECT_EQ(content("a.dat"), "old");
  EXPECT_EQ(entries(), (std::set<std::string>{"a.dat", ".a.dat.holdfast", "link"}));
}

TEST_F(TreeOfNames, a_rename_that_fails_leaves_an_open_file_with_its_name) {
  ASSERT_TRUE(protect("a.dat", "new").ok());
  ASSERT_TRUE(protect("b.dat", "old").ok());
  const auto moves = open("a.dat"), stays = open("b.dat");
  moves->answer = Status(Kind::io, "", EXDEV);
  expect_refused(rename("a.dat", "b.dat"), EXDEV);
  EXPECT_EQ(stays->unlinks, 1);
  EXPECT_EQ(stays->renamed_to, user("b.dat"));
}

TEST_F(TreeOfNames, nothing_takes_the_place_of_a_protected_file_from_another_file_system) {
  struct stat here, there;
  const fs::path elsewhere = fs::path("/dev/shm") / root.filename();
  if (!fs::create_directory(elsewhere)) GTEST_SKIP() << "/dev/shm cannot be written";
  if (stat(root.c_str(), &here) != 0 || stat(elsewhere.c_str(), &there) != 0 || here.st_dev == there.st_dev) GTEST_SKIP() << "one file system";
  ASSERT_TRUE(protect("a.dat", "old").ok());
  write(elsewhere / "a.tmp", "new");
  ASSERT_TRUE(protect("../../../../../../../.." + (elsewhere / "b.dat").string(), "new").ok());
  const auto stays = open("a.dat");
  for (const char* from : {"a.tmp", "b.dat"})
    expect_refused(tree.rename({elsewhere / from, is_protected(AT_FDCWD, (elsewhere / from).c_str(), false)}, name("a.dat"), {}, [] { return 0; }),
                   EXDEV);
  EXPECT_EQ(stays->unlinks, 0);
  openings.open.clear();
  EXPECT_EQ(content("a.dat"), "old");
  fs::remove_all(elsewhere);
}

TEST_F(TreeOfNames, a_directory_takes_no_files_place) {
  ASSERT_TRUE(protect("a.dat", "old").ok());
  fs::create_directories(user("directory/below"));
  expect_refused(rename("directory", "a.dat"), ENOTDIR);
  expect_refused(rename("a.dat", "directory"), EISDIR);
  EXPECT_EQ(content("a.dat"), "old");
}

TEST_F(TreeOfNames, a_name_that_ends_in_a_slash_is_no_files) {
  ASSERT_TRUE(protect("a.dat", "one").ok());
  ASSERT_TRUE(protect("b.dat", "two").ok());
  write(user("c.tmp"), "plain");
  expect_refused(rename("a.dat", "b.dat/"), ENOTDIR);
  expect_refused(rename("a.dat", "new/"), ENOTDIR);
  expect_refused(rename("a.dat/", "b.dat"), ENOTDIR);
  EXPECT_TRUE(rename("c.tmp", "new.dat/").natively);
  EXPECT_EQ(content("a.dat"), "one");
  EXPECT_EQ(content("b.dat"), "two");
}

// ---------------------------------------------------------------- directories

TEST_F(TreeOfNames, a_directory_that_shows_nothing_is_emptied) {
  fs::create_directories(root / "home/run/.gone.dat.holdfast");
  EXPECT_TRUE(tree.clear_directory(user("run")).ok());
  EXPECT_TRUE(fs::is_empty(user("run")));
  EXPECT_EQ(openings.left, std::vector<std::string>{user("run")});
}

TEST_F(TreeOfNames, a_directory_that_shows_something_is_left_alone) {
  fs::create_directories(root / "home/run/.gone.dat.holdfast");
  write(user("run/file"), "");
  EXPECT_FALSE(tree.clear_directory(user("run")).ok());
  EXPECT_TRUE(fs::exists(root / "home/run/.gone.dat.holdfast"));
}

}  // namespace
}  // namespace holdfast::tree
