#include "checkpoint/directory_mark.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace holdfast::checkpoint {
namespace {

class DirectoryMarks : public ::testing::Test {
 protected:
  DirectoryMarks() {
    std::string pattern = (std::filesystem::temp_directory_path() / "holdfast-marks-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    run_.id = "0123456789abcdef";
    run_.attempt = {2, 0x1234};
  }
  ~DirectoryMarks() override { std::filesystem::remove_all(root_); }

  Kind mark(DirectoryMark as) { return mark_directory(root_, run_, as).kind(); }
  DirectoryMark now() { return directory_mark(root_, run_); }
  size_t files() { return size_t(std::distance(std::filesystem::directory_iterator(root_), {})); }
  // How many of many who do it at once are told that it was they.
  int succeed_at_once(DirectoryMark as) {
    std::atomic<int> done = 0;
    std::vector<std::jthread> all;
    for (int i = 0; i < 8; ++i) all.emplace_back([&] { done += mark(as) == Kind::ok; });
    all.clear();
    return done;
  }

  std::string root_;
  checkpoint::Run run_;
};

TEST_F(DirectoryMarks, say_what_was_done_last) {
  EXPECT_EQ(now(), DirectoryMark::none);
  for (const DirectoryMark one : {DirectoryMark::removed, DirectoryMark::made, DirectoryMark::removed}) {
    EXPECT_EQ(mark(one), Kind::ok);
    EXPECT_EQ(now(), one);
    EXPECT_EQ(mark(one), Kind::exists);
    EXPECT_EQ(files(), 1u);
  }
}

TEST_F(DirectoryMarks, are_made_by_one_of_all_who_do_it_at_once) {
  for (int round = 0; round < 20; ++round)
    for (const DirectoryMark one : {DirectoryMark::made, DirectoryMark::removed}) EXPECT_EQ(succeed_at_once(one), 1);
}

TEST_F(DirectoryMarks, of_other_attempts_say_nothing_and_go_with_all) {
  mark(DirectoryMark::removed);
  std::ofstream(root_ + "/a.0") << "drained";
  run_.attempt = {3, 0x2345};
  EXPECT_EQ(now(), DirectoryMark::none);
  EXPECT_EQ(mark(DirectoryMark::made), Kind::ok);
  remove_marks(root_);
  EXPECT_EQ(files(), 1u);
}

TEST_F(DirectoryMarks, go_where_nothing_else_is_left) {
  EXPECT_FALSE(clear_of_marks(root_)) << "it is empty";
  mark(DirectoryMark::made);
  std::ofstream(root_ + "/a.0") << "drained";
  EXPECT_FALSE(clear_of_marks(root_));
  EXPECT_EQ(files(), 2u);
  std::filesystem::remove(root_ + "/a.0");
  EXPECT_TRUE(clear_of_marks(root_));
  EXPECT_EQ(files(), 0u);
}

}  // namespace
}  // namespace holdfast::checkpoint
