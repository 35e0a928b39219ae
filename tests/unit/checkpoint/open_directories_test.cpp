#include "checkpoint/open_directories.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace holdfast::checkpoint {
namespace {

using Names = OpenDirectories::Names;
using Listings = std::vector<Names>;

class OpenDirectoriesBelow : public ::testing::Test {
 protected:
  OpenDirectoriesBelow() {
    std::string pattern = (std::filesystem::temp_directory_path() / "holdfast-open-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    make_directories();
  }
  ~OpenDirectoriesBelow() override { std::filesystem::remove_all(root_); }

  void make_directories() {
    for (const char* one : {"closed", "kept"}) std::filesystem::create_directories(above() / one);
  }
  std::filesystem::path above() const { return root_ / "attempt"; }
  void put(const char* directory, const char* name) { std::ofstream(above() / directory / name) << "x"; }
  static size_t open_descriptors() {
    return size_t(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
  }

  std::filesystem::path root_;
};

TEST_F(OpenDirectoriesBelow, show_what_has_come_and_gone_since) {
  OpenDirectories all(above());
  EXPECT_EQ(all.list({"closed", "rare", "kept"}), (Listings{{}, {}, {}}));
  const size_t open = open_descriptors();
  put("closed", "a");
  std::filesystem::create_directory(above() / "rare");
  put("rare", "b");
  EXPECT_EQ(all.list({"closed", "rare", "kept"}), (Listings{{"a"}, {"b"}, {}}));
  std::filesystem::rename(above() / "closed/a", above() / "kept/a");
  for (int again = 0; again < 3; ++again) EXPECT_EQ(all.list({"closed", "rare", "kept"}), (Listings{{}, {"b"}, {"a"}}));
  EXPECT_EQ(open_descriptors(), open + 1) << "the rare one";
}

TEST_F(OpenDirectoriesBelow, that_are_removed_and_made_anew_are_the_new_ones) {
  OpenDirectories all(above());
  put("closed", "old");
  EXPECT_EQ(all.list({"closed", "kept"}), (Listings{{"old"}, {}}));
  std::filesystem::remove_all(above());
  EXPECT_EQ(all.list({"closed", "kept"}), (Listings{{}, {}}));
  make_directories();
  put("closed", "new");
  EXPECT_EQ(all.list({"closed", "kept"}), (Listings{{"new"}, {}}));
  std::filesystem::remove_all(above());
  make_directories();
  put("kept", "newer");
  EXPECT_EQ(all.list({"closed", "kept"}), (Listings{{}, {"newer"}}));
  std::filesystem::remove_all(above() / "kept");  // one of them
  EXPECT_EQ(all.list({"kept", "closed"}), (Listings{{}, {}}));
}

// It shares the places with its parent, which may be in the middle of a listing.
TEST_F(OpenDirectoriesBelow, are_a_childs_own) {
  OpenDirectories all(above());
  put("closed", "a");
  EXPECT_EQ(all.list({"closed"}), (Listings{{"a"}}));
  const pid_t child = ::fork();
  if (child == 0) {
    const size_t open = open_descriptors();
    const bool is_right = all.list({"closed", "kept"}) == Listings{{"a"}, {}} && open_descriptors() == open;
    ::_exit(is_right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace holdfast::checkpoint
