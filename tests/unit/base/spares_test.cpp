#include "base/spare_numbers.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace holdfast::raw {
namespace {

int waits(Spares& spares) {
  int tries = 0;
  while (spares.wait_for_one(tries)) ++tries;
  return tries;
}

// A process that may have too few descriptors at all waited a second for each call, and more than a minute for a file on six nodes.
TEST(Spares, who_waits_after_others_have_waited_in_vain_gives_up_soon) {
  Spares spares;
  spares.wanted = 1;
  EXPECT_GT(waits(spares), 100);
  EXPECT_LE(waits(spares), 10);
  EXPECT_LE(waits(spares), 10);

  spares.wanted = 2;
  spares.keep(raw::openat(AT_FDCWD, "/", O_PATH | O_CLOEXEC));
  EXPECT_GT(waits(spares), 100) << "one has come back, so others may";
  ASSERT_TRUE(spares.give_up());
}

TEST(Spares, nobody_waits_where_none_is_away) {
  Spares spares;
  EXPECT_EQ(waits(spares), 0);
}

void allow(uint64_t descriptors) {
  const rlimit limit{descriptors, descriptors};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

void fill_the_table() {
  while (dup(0) >= 0) continue;
}

// By Holdfast, for which the spare ones are closed.
bool can_open(int count) {
  while (count > 0 && raw::openat(AT_FDCWD, "/", O_PATH | O_CLOEXEC) >= 0) --count;
  return count == 0;
}

// In a process of its own, for limits cannot be raised again.
void apart(const std::function<void()>& test) { EXPECT_EXIT((test(), _exit(testing::Test::HasFailure())), testing::ExitedWithCode(0), ""); }

TEST(Spares, a_writer_has_its_whole_reserve_or_is_refused) {
  apart([] {
    allow(uint64_t(least_allowed(38)));
    lowest_own = own_numbers_begin();
    EXPECT_EQ(keep_spares(38, Need::to_write), Reserve::kept);
    for (int i = 0; i < open_beside(38) - 1; ++i) EXPECT_GE(lifted(dup(0)), left_to_program);
    EXPECT_EQ(spares.kept, 38) << "what a file has open beside them, with their pattern, takes none";
    fill_the_table();
    EXPECT_TRUE(can_open(38));
  });
  apart([] {
    allow(uint64_t(least_allowed(38)) - 1);
    EXPECT_EQ(keep_spares(38, Need::to_write), Reserve::forbidden);
    EXPECT_EQ(keep_spares(38, Need::to_read), Reserve::kept) << "who reads needs fewer";
    EXPECT_EQ(spares.kept, (least_allowed(38) - 1) / 4);
  });
  apart([] {
    allow(200);
    std::vector<int> taken;
    for (int i = 0; i < 170; ++i) taken.push_back(dup(0));
    EXPECT_EQ(keep_spares(38, Need::to_write), Reserve::none);
    for (int i = 0; i < 20; ++i) raw::close(taken[size_t(i)]);
    EXPECT_EQ(keep_spares(38, Need::to_write), Reserve::kept) << "low numbers are free";
  });
}

// What several files would open later came out of a reserve that was enough for one. Beyond the high numbers it was eaten up even while there
// were low ones.
TEST(Spares, files_that_have_not_committed_yet_have_their_share) {
  apart([] {
    allow(256);
    lowest_own = own_numbers_begin();
    std::vector<std::unique_ptr<Share>> shares;
    for (int file = 0; file < 4; ++file) {
      shares.push_back(std::make_unique<Share>(38));
      EXPECT_EQ(keep_spares(38, Need::to_write), Reserve::kept);
      EXPECT_EQ(spares.kept, std::max(38 + file * opened_later(38), std::min(38 * (file + 1), 256 / 4)));
      for (int open = 0; open < open_beside(38) - opened_later(38); ++open) mark_own(lifted(dup(0)), true);
    }
    for (auto& share : shares) {
      for (int later = 0; later < opened_later(38); ++later) mark_own(lifted(dup(0)), true);
      share->opened();
    }
    spares.refill();  // as each close of Holdfast's does
    EXPECT_LE(spares.kept, 256 / 4) << "what is open is no longer kept";
    EXPECT_GE(spares.kept, 38);
    fill_the_table();
    EXPECT_TRUE(can_open(38));
  });
}

// Several threads that committed at once shared a reserve for one, and files lost targets.
TEST(Spares, commits_at_once_wait_for_each_other_where_they_lack_numbers) {
  for (const bool is_full : {true, false})
    apart([=] {
      allow(256);
      lowest_own = own_numbers_begin();
      EXPECT_EQ(keep_spares(38, Need::to_write), Reserve::kept);
      if (is_full) fill_the_table();
      std::atomic<bool> has_begun{false};
      auto first = std::make_unique<CommitTurn>(38, true);
      std::thread other([&] {
        const CommitTurn second(38, true);
        has_begun = true;
      });
      if (is_full) {
        usleep(100000);
        EXPECT_FALSE(has_begun) << "the reserve is for one";
        const CommitTurn of_all_ranks(38, false);  // does not wait
        first.reset();
      }
      other.join();
      EXPECT_TRUE(has_begun);
    });
}

// In a forked child nobody goes on with the commits of its parent's threads.
TEST(Spares, a_forked_child_does_not_wait_for_its_parents_commits) {
  apart([] {
    allow(256);
    EXPECT_EQ(keep_spares(38, Need::to_write), Reserve::kept);
    fill_the_table();
    const CommitTurn of_parent(38, true);
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      const CommitTurn own(38, true);
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  });
}

// The spare ones lay beyond it and made no room, or there were none at all.
TEST(Spares, a_limit_that_the_program_lowers_is_followed) {
  for (const bool had_some : {false, true})
    apart([=] {
      allow(1024);
      lowest_own = own_numbers_begin();
      EXPECT_EQ(keep_spares(had_some ? 18 : 0, Need::to_write), Reserve::kept);
      allow(256);
      EXPECT_EQ(keep_spares(18, Need::to_write), Reserve::kept);
      EXPECT_EQ(lowest_own, 128);
      fill_the_table();
      EXPECT_TRUE(can_open(18));
    });
}

}  // namespace
}  // namespace holdfast::raw
