#include "checkpoint/open_directories.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "unit/catalog/forwarding_environment.hpp"

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

class CountsOpens : public catalog::ForwardingEnvironment {
 public:
  using ForwardingEnvironment::ForwardingEnvironment;
  int openat(int directory, const char* name, int flags, mode_t mode) override {
    return ++opens, ForwardingEnvironment::openat(directory, name, flags, mode);
  }
  int fstatat(int directory, const char* name, struct stat* into, int flags) override {
    const int result = ForwardingEnvironment::fstatat(directory, name, into, flags);
    if (has_no_links) into->st_nlink = 1;
    return result;
  }
  int opens = 0;
  bool has_no_links = false;  // as a file system that does not count directories
};

TEST_F(OpenDirectoriesBelow, that_are_missing_are_asked_for_once) {
  std::filesystem::create_directory(above() / "more");
  const bool are_counted = std::filesystem::hard_link_count(above()) > 2;  // not on every file system
  CountsOpens counts{catalog::environment()};
  const catalog::ReplacedEnvironment counted(counts);
  OpenDirectories all(above());
  const std::vector<std::string> asked{"closed", "rare", "kept", "other"};
  for (const bool has_no_links : {false, true}) {
    counts.has_no_links = has_no_links;
    (void)all.list(asked);
    counts.opens = 0;
    EXPECT_EQ(all.list(asked), (Listings{{}, {}, {}, {}}));
    EXPECT_EQ(counts.opens, has_no_links || !are_counted ? 2 : 0);
  }
  counts.has_no_links = false;
  (void)all.list(asked);
  std::filesystem::create_directory(above() / "other");
  put("other", "a");
  EXPECT_EQ(all.list(asked), (Listings{{}, {}, {}, {"a"}}));
}

TEST_F(OpenDirectoriesBelow, that_are_made_with_what_lies_above_are_seen) {
  OpenDirectories all(above());
  for (int again = 0; again < 2; ++again) EXPECT_EQ(all.list({"rare", "closed"}), (Listings{{}, {}}));
  std::filesystem::remove_all(above());
  make_directories();
  std::filesystem::create_directory(above() / "rare");
  put("rare", "a");
  EXPECT_EQ(all.list({"rare", "closed"}), (Listings{{"a"}, {}}));
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
