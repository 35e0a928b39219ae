// Calls on names in a real directory, made once for all replicas: what a lost leader has done, and what somebody else has.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <latch>
#include <thread>

#include "file/coordinated/alike.hpp"
#include "file/coordinated/names.hpp"
#include "unit/file/fake_twins.hpp"

namespace holdfast::file::test {
namespace {

class Names : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / ("holdfast-names-" + std::to_string(::getpid()));
    std::filesystem::create_directory(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  void make(const std::string& name, const std::string& content) const {
    const raw::Fd fd(::open(path(name).c_str(), O_CREAT | O_WRONLY, 0644));
    ASSERT_EQ(::write(fd.get(), content.data(), content.size()), ssize_t(content.size()));
  }
  // By two replicas, the first of which dies at its act. What the other one is told: 0, or errno.
  int survivor(Death::When when, const std::function<int(FakeReplica&)>& call, std::function<void()> at_death = {}) const {
    return survivor(Death{when, 1}, call, std::move(at_death));
  }
  int survivor(Death death, const std::function<int(FakeReplica&)>& call, std::function<void()> at_death = {}) const {
    Disk disk(false);
    Group group(2, death, disk);
    group.at_death = std::move(at_death);
    FakeReplica first(group, 0), second(group, 1);
    std::thread dies([&] {
      try {
        (void)call(first);
      } catch (const Died&) {
      }
    });
    const int told = call(second);
    dies.join();
    return told;
  }
  int open(FakeReplica& replica, const std::string& name, int flags, mode_t mode = 0644) const {
    const auto fd = open_once(replica, path(name), flags, mode);
    return fd ? 0 : fd.status().to_errno();
  }
  int rename(FakeReplica& replica, const std::string& from, const std::string& to, unsigned flags = 0) const {
    const auto act = [&] { return ::renameat2(AT_FDCWD, path(from).c_str(), AT_FDCWD, path(to).c_str(), flags); };
    return once(replica, Call::rename, path(from), path(to), ENOENT, act) == 0 ? 0 : errno;
  }
  static constexpr int exclusive = O_WRONLY | O_CREAT | O_EXCL;

 private:
  std::filesystem::path directory_;
};

TEST_F(Names, a_foreign_file_is_not_taken_for_one_that_a_lost_leader_has_made) {
  for (const Death::When when : {Death::before, Death::after}) {
    make("lock", "");
    EXPECT_EQ(survivor(when, [&](FakeReplica& replica) { return open(replica, "lock", exclusive); }), EEXIST);
  }
}

TEST_F(Names, what_was_written_by_somebody_else_while_the_leader_died_is_not_the_leaders) {
  const auto call = [&](FakeReplica& replica) { return open(replica, "lock", exclusive); };
  EXPECT_EQ(survivor(Death::before, call, [&] { make("lock", "mine"); }), EEXIST);
}

TEST_F(Names, one_that_a_lost_leader_has_made_is_the_survivors) {
  for (const Death::When when : {Death::before, Death::after}) {
    EXPECT_EQ(survivor(when, [&](FakeReplica& replica) { return open(replica, "lock", exclusive); }), 0);
    EXPECT_EQ(::unlink(path("lock").c_str()), 0);
  }
}

TEST_F(Names, a_rename_that_cannot_be_made_is_no_success_after_a_loss) {
  make("source", "content");
  for (const Death::When when : {Death::before, Death::after})
    EXPECT_EQ(survivor(when, [&](FakeReplica& replica) { return rename(replica, "source", "nowhere/goal"); }), ENOENT);
  EXPECT_TRUE(std::filesystem::exists(path("source")));
}

TEST_F(Names, a_rename_is_made_once_whenever_the_leader_is_lost) {
  for (const Death::When when : {Death::before, Death::after}) {
    make("source", "content");
    EXPECT_EQ(survivor(when, [&](FakeReplica& replica) { return rename(replica, "source", "goal"); }), 0);
    EXPECT_TRUE(std::filesystem::exists(path("goal")));
    EXPECT_FALSE(std::filesystem::exists(path("source")));
  }
}

TEST_F(Names, an_exchange_of_two_names_is_not_undone_by_the_next_leader) {
  for (const Death::When when : {Death::before, Death::after}) {
    make("one", "1");
    make("other", "22");
    EXPECT_EQ(survivor(when, [&](FakeReplica& replica) { return rename(replica, "one", "other", RENAME_EXCHANGE); }), 0);
    EXPECT_EQ(std::filesystem::file_size(path("one")), 2u);
    EXPECT_EQ(std::filesystem::file_size(path("other")), 1u);
    ASSERT_EQ(::unlink(path("one").c_str()) | ::unlink(path("other").c_str()), 0);
  }
}

// As a user whom modes hold back, which is one thread's affair for the kernel.
bool is_held_back() {
  constexpr uid_t nobody = 65534;
  return ::syscall(SYS_setresuid, nobody, nobody, nobody) == 0 || ::geteuid() != 0;
}
mode_t mode_of(const std::string& path) {
  struct stat state {};
  return ::stat(path.c_str(), &state) == 0 ? state.st_mode & 07777 : 0;
}

TEST_F(Names, a_file_whose_mode_forbids_to_write_is_open_in_all) {
  std::filesystem::permissions(path("."), std::filesystem::perms::all);
  for (const int flags : {exclusive, O_WRONLY | O_CREAT, O_RDWR | O_CREAT}) {
    Disk disk(false);
    Group group(3, {}, disk);
    std::array<int, 3> told{-1, -1, -1};
    std::atomic<bool> held_back = true;
    std::vector<std::thread> all;
    for (int team = 0; team < 3; ++team)
      all.emplace_back([&, team] {
        if (!is_held_back()) held_back = false;
        FakeReplica replica(group, team);
        told[size_t(team)] = open(replica, "readonly", flags, 0440);
      });
    for (std::thread& thread : all) thread.join();
    if (!held_back) GTEST_SKIP() << "modes do not hold this user back, and it cannot become another one";
    EXPECT_EQ(told, (std::array{0, 0, 0}));
    EXPECT_EQ(mode_of(path("readonly")), 0440u);
    ASSERT_EQ(::unlink(path("readonly").c_str()), 0);
  }
}

TEST_F(Names, a_mode_is_set_by_the_survivor_where_the_leader_is_lost) {
  std::filesystem::permissions(path("."), std::filesystem::perms::all);
  for (const int flags : {exclusive, O_WRONLY | O_CREAT})
    for (const int act : {1, 2})
      for (const Death::When when : {Death::before, Death::after}) {
        int told = -1;
        std::thread user([&] {
          if (is_held_back()) told = survivor({when, act}, [&](FakeReplica& replica) { return open(replica, "readonly", flags, 0440); });
        });
        user.join();
        if (told < 0) GTEST_SKIP() << "modes do not hold this user back, and it cannot become another one";
        EXPECT_EQ(told, 0);
        EXPECT_EQ(mode_of(path("readonly")), 0440u);
        ASSERT_EQ(::unlink(path("readonly").c_str()), 0);
      }
}

// The threads of each replica make the same calls. Which of them is first is their own affair.
TEST_F(Names, threads_that_use_one_name_do_not_wait_for_ever) {
  constexpr int threads = 4, calls = 40;
  Disk disk(false);
  Group group(2, {}, disk);
  FakeReplica first(group, 0), second(group, 1);
  std::array<std::atomic<int>, 2> made{};
  std::latch ended(2 * threads);
  std::vector<std::thread> all;
  for (FakeReplica* const replica : {&first, &second})
    for (int thread = 0; thread < threads; ++thread)
      all.emplace_back([&, replica] {
        const auto make_one = [&](const std::string& name) { return ::mkdir(path(name).c_str(), 0755); };
        for (int i = 0; i < calls; ++i) {
          const std::string name = "made." + std::to_string(i % 4) + "." + std::to_string(i / 8);
          const int told = once(*replica, Call::make_directory, path(name), "", EEXIST, [&] { return make_one(name); });
          made[size_t(replica->place().team)] += told == 0;
          (void)open(*replica, "shared", O_WRONLY | O_CREAT);
        }
        ended.count_down();
      });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!ended.try_wait() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (!ended.try_wait()) ADD_FAILURE() << "they hang", std::_Exit(1);
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(made[0], calls / 2);
  EXPECT_EQ(made[1], calls / 2);
}

TEST(NamedAlike, is_by_the_number_of_the_first_process) {
  EXPECT_EQ(named_alike({.own = 4712, .first = 4711}, "/home/log.4712"), "/home/log.4711");
  EXPECT_EQ(named_alike({.own = 4712, .first = 4711}, "/home/log.14712"), "/home/log.14712");
  EXPECT_EQ(named_alike({.own = 4712, .first = 6}, "/home/log.4712"), "/home/log.6") << "on another node";
}

// In a container.
TEST(NamedAlike, takes_no_small_number_for_a_process) {
  EXPECT_EQ(named_alike({.own = 7, .first = 6}, "/opt/python-3.11.7/out.7"), "/opt/python-3.11.7/out.7");
}

}  // namespace
}  // namespace holdfast::file::test
