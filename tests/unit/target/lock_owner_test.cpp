#include "target/lock_owner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/companion.hpp"

namespace holdfast::target {
namespace {

using testing::HasSubstr;

TEST(LockOwner, is_read_as_it_was_written) {
  const LockOwner me = new_hold();
  const LockOwner read = decode_lock_owner(encode(me));
  EXPECT_EQ(encode(read), encode(me));
  EXPECT_EQ(read.process, getpid());
  EXPECT_NE(read.start, 0u);
  EXPECT_NE(new_hold().number, me.number);
}

TEST(LockOwner, that_cannot_be_read_is_nobody_whose_death_is_proved) {
  const std::string whole = encode(new_hold());
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) EXPECT_FALSE(is_provably_dead(decode_lock_owner(whole.substr(0, bytes))));
  EXPECT_THAT(decode_lock_owner("").sentence(), HasSubstr("no word"));
}

TEST(LockOwner, that_lives_is_not_dead) {
  EXPECT_FALSE(is_provably_dead(new_hold()));
  LockOwner parent = new_hold();
  parent.process = 1;  // may not be looked at by everybody
  parent.start = 0;
  EXPECT_FALSE(is_provably_dead(parent));
}

// Its number may be another process's by now.
TEST(LockOwner, whose_number_has_another_start_is_dead) {
  LockOwner other = new_hold();
  other.start += 1;
  EXPECT_TRUE(is_provably_dead(other));
}

TEST(LockOwner, that_was_killed_is_dead_also_before_its_parent_knows) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = encode(new_hold());
    const bool told = write(ends[1], text.data(), text.size()) == ssize_t(text.size());
    while (told) pause();
    _exit(1);
  }
  char text[4096];
  const ssize_t got = read(ends[0], text, sizeof text);
  ASSERT_GT(got, 0);
  const LockOwner owner = decode_lock_owner(std::string(text, size_t(got)));
  EXPECT_EQ(owner.process, child);
  EXPECT_FALSE(is_provably_dead(owner));
  kill(child, SIGKILL);
  siginfo_t ended;
  ASSERT_EQ(waitid(P_PID, id_t(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(is_provably_dead(owner));
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(is_provably_dead(owner));
  close(ends[0]);
  close(ends[1]);
}

TEST(LockOwner, of_another_node_or_namespace_is_never_proved_dead) {
  LockOwner gone = new_hold();
  gone.start += 1;
  LockOwner other = gone;
  other.host += "-2";
  EXPECT_FALSE(is_provably_dead(other));
  other = gone;
  other.space = "pid:[1]time:[1]";
  EXPECT_FALSE(is_provably_dead(other));
  other = gone;
  other.space.clear();
  EXPECT_FALSE(is_provably_dead(other));
}

// A start of the kernel that is over: only where host name and machine-id make it the same machine, and no container is in it.
TEST(LockOwner, of_an_earlier_start_of_this_machine_is_dead) {
  LockOwner before = new_hold();
  before.boot = "00000000-0000-0000-0000-000000000000";
  const bool one_machine = !before.machine.empty() && before.space.starts_with("pid:[4026531836]") && !before.host.starts_with("localhost");
  EXPECT_EQ(is_provably_dead(before), one_machine);
  before.machine += "0";
  EXPECT_FALSE(is_provably_dead(before));
  before.machine.clear();
  EXPECT_FALSE(is_provably_dead(before));
}

// The companion has a number of its own; the lock is its process's.
TEST(LockOwner, of_a_companion_is_its_process) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(start_companion(
                [](void* end) {
                  const int process = process_id();
                  (void)!write(*static_cast<int*>(end), &process, sizeof process);
                },
                &ends[1]),
            0);
  int process = 0;
  ASSERT_EQ(read(ends[0], &process, sizeof process), ssize_t(sizeof process));
  EXPECT_EQ(process, getpid());
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace holdfast::target
