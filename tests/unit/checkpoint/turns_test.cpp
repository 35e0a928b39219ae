#include "checkpoint/turns.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace holdfast::checkpoint {
namespace {

using namespace std::chrono_literals;

class TurnsOfProcesses : public ::testing::Test {
 protected:
  TurnsOfProcesses() {
    std::string pattern = (std::filesystem::temp_directory_path() / "holdfast-turns-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    turns_ = std::make_shared<Turns>((root_ / "attempt/turns").string());
  }
  ~TurnsOfProcesses() override { std::filesystem::remove_all(root_); }

  Result<Turns::Turn> take(const std::string& file, std::chrono::milliseconds patience = 20ms) {
    return turns_->take(file, patience, [&] { return std::filesystem::create_directory(root_ / "attempt"), Status(); });
  }
  // In another process, which knows this one's.
  Kind of_child(const std::string& file, std::chrono::milliseconds patience = 20ms) {
    return in_child([&] { return take(file, patience).status().kind(); });
  }
  Kind of_stranger(const std::string& file) {
    return in_child([&] {
      const auto own = std::make_shared<Turns>((root_ / "attempt/turns").string());
      return own->take(file, 20ms, [] { return Status(); }).status().kind();
    });
  }
  template <class What>
  static Kind in_child(const What& what) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(int(what()));
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return Kind(WEXITSTATUS(status));
  }

  std::filesystem::path root_;
  std::shared_ptr<Turns> turns_;
};

TEST_F(TurnsOfProcesses, one_at_each_file) {
  auto turn = take("/a");
  ASSERT_TRUE(turn.ok()) << turn.status().sentence();
  EXPECT_EQ(of_stranger("/a"), Kind::busy);
  EXPECT_EQ(of_child("/a"), Kind::busy);
  EXPECT_EQ(of_stranger("/b"), Kind::ok);
  *turn = {};
  EXPECT_EQ(of_stranger("/a"), Kind::ok);
  EXPECT_EQ(of_child("/a"), Kind::ok);
}

TEST_F(TurnsOfProcesses, end_with_a_process_whatever_its_children_have_open) {
  int pipes[2], until_over[2];
  ASSERT_EQ(::pipe(pipes), 0);
  ASSERT_EQ(::pipe(until_over), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    ::close(until_over[1]);
    const auto turn = take("/a");
    const bool is_holder = ::fork() != 0;
    char none;
    if (is_holder) (void)!::write(pipes[1], turn.ok() ? "y" : "n", 1);
    (void)!::read(until_over[0], &none, 1);
    ::_exit(0);
  }
  char said = 0;
  ASSERT_EQ(::read(pipes[0], &said, 1), 1);
  ASSERT_EQ(said, 'y');
  EXPECT_EQ(of_stranger("/a"), Kind::busy);
  ::kill(holder, SIGKILL);
  (void)::waitpid(holder, nullptr, 0);
  EXPECT_EQ(of_stranger("/a"), Kind::ok);
  for (const int fd : {pipes[0], pipes[1], until_over[0], until_over[1]}) ::close(fd);
}

// The numbers that a program closed by its own calls of the system are its own by then.
TEST_F(TurnsOfProcesses, leave_another_file_alone_that_has_their_number) {
  const std::string other = (root_ / "other").string();
  ASSERT_TRUE(take("/a").ok());
  int number = -1;
  for (int fd = 3; fd < 4096; ++fd)
    if (std::error_code none; std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), none) == root_ / "attempt/turns") number = fd;
  ASSERT_GE(number, 0);
  const int opened = ::open(other.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::dup2(opened, number), number);
  const auto turn = take("/a");
  ASSERT_TRUE(turn.ok()) << turn.status().sentence();
  EXPECT_EQ(of_stranger("/a"), Kind::busy);
  struct stat state;
  EXPECT_EQ(::fstat(number, &state), 0) << "it was closed";
  ::close(opened), ::close(number);
}

TEST_F(TurnsOfProcesses, go_on_where_a_program_has_closed_all_its_numbers_or_removed_the_file) {
  ASSERT_TRUE(take("/a").ok());
  for (int fd = 3; fd < 1024; ++fd) ::close(fd);
  {
    const auto turn = take("/a");
    ASSERT_TRUE(turn.ok()) << turn.status().sentence();
    EXPECT_EQ(of_stranger("/a"), Kind::busy);
  }
  std::filesystem::remove_all(root_ / "attempt");
  const auto turn = take("/a");
  ASSERT_TRUE(turn.ok()) << turn.status().sentence();
  EXPECT_EQ(of_stranger("/a"), Kind::busy);
}

}  // namespace
}  // namespace holdfast::checkpoint
