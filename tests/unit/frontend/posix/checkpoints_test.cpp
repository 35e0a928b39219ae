// What a process sees of checkpoints, and what becomes of those that it writes: beside other threads, other processes and other ranks.
#include "frontend/posix/checkpoints.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "catalog/pool.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/run.hpp"
#include "unit/catalog/scene.hpp"

namespace holdfast::frontend::posix {
namespace {

using checkpoint::LocalFiles;
using checkpoint::LocalName;
using checkpoint::State;

constexpr uint32_t rank_here = 1, ranks = 2;

// One job for all tests, as a process is of one: each has steps of its own. This is rank 1, on the second of three nodes.
class CheckpointsOfProcess : public ::testing::Test {
 protected:
  struct Job : catalog::Scene {
    Job() {
      targets(3, "rs:2+1");
      settings.local.swap(settings.targets);
      EXPECT_TRUE(catalog::open_pool(settings));
      settings.checkpoint = {user("ck.{step}.{rank}"), user("head.{step}")};
      run = {.id = "0123456789abcdef", .attempt = 1, .from = {}, .simulated = true, .nodes = settings.local};
      ::setenv(checkpoint::run_variable, encode(run).c_str(), 1);
      ::setenv("PMI_RANK", std::to_string(rank_here).c_str(), 1);
      ::setenv("PMI_SIZE", std::to_string(ranks).c_str(), 1);
      all = Checkpoints::of_process(settings);
    }
    void TestBody() override {}
    std::string path(const std::string& name) const { return user(name); }
    using Scene::read;
    using Scene::settings;
    using Scene::write;
    checkpoint::Run run;
    Checkpoints* all = nullptr;
  };
  static void SetUpTestSuite() { job = new Job; }
  static void TearDownTestSuite() { delete job; }

  static Checkpoints::File file(const std::string& name) { return *job->all->match(job->path(name)); }
  static LocalFiles files() { return LocalFiles(job->settings.local[rank_here], job->run.id, job->run.attempt); }
  static int open(const std::string& name, int flags) {
    Status status;
    return job->all->open_to_write(file(name), flags, 0644, status);
  }
  static bool has(State state, const std::string& name) {
    for (const LocalName& one : files().list(state))
      if (one.file == job->path(name)) return true;
    return false;
  }
  static std::string seen(const std::string& name) {
    const auto sight = job->all->look(file(name));
    return sight && sight->what == Checkpoints::Sight::local ? Job::read(sight->path) : "";
  }
  // As the protector of another rank's node does with what that one has closed.
  static void other_rank_writes(const std::string& name, uint32_t number, const std::string& text) {
    const std::string source = job->path("source");
    Job::write(source, text);
    const Checkpoints::File of = file(name);
    const layout::Version version{job->run.id, job->run.attempt, of.named.step, of.named.rank, ranks, number, of.path, number};
    const auto done = checkpoint::protect(source, version, job->settings.local[0], job->settings);
    EXPECT_TRUE(done) << done.status().sentence();
  }
  static Job* job;
};
CheckpointsOfProcess::Job* CheckpointsOfProcess::job = nullptr;

// Of several threads.

TEST_F(CheckpointsOfProcess, a_number_that_another_thread_gets_is_that_ones) {
  const int first = open("ck.1.1", O_WRONLY | O_CREAT);
  ASSERT_GE(first, 0);
  const int closing = job->all->closing(first);
  ::close(first);
  const int second = open("ck.2.1", O_WRONLY | O_CREAT);
  ASSERT_EQ(second, first);
  job->all->closed(closing);
  EXPECT_TRUE(has(State::closed, "ck.1.1"));
  EXPECT_TRUE(has(State::writing, "ck.2.1"));
  EXPECT_TRUE(Checkpoints::is_written(second));
  ::close(second);
  job->all->closed(second);
  EXPECT_TRUE(has(State::closed, "ck.2.1"));
}

TEST_F(CheckpointsOfProcess, an_exit_while_a_thread_closes_leaves_it_complete) {
  const int fd = open("ck.3.1", O_WRONLY | O_CREAT);
  const int closing = job->all->closing(fd);
  EXPECT_FALSE(Checkpoints::is_written(fd));
  job->all->closed_all(false);
  EXPECT_TRUE(has(State::closed, "ck.3.1"));
  ::close(fd);
  job->all->closed(closing);
  EXPECT_TRUE(has(State::closed, "ck.3.1"));
  EXPECT_EQ(job->all->closing(fd), 0) << "nothing is written by it any more";
}

// Of several ranks.

TEST_F(CheckpointsOfProcess, what_another_rank_writes_anew_takes_the_place_of_what_was_read) {
  for (const std::string name : {"ck.10.0", "head.10"}) {
    other_rank_writes(name, 1, "first");
    EXPECT_EQ(seen(name), "first");
    other_rank_writes(name, 2, "second");
    EXPECT_EQ(seen(name), "second") << name;
    EXPECT_EQ(seen(name), "second") << name;
  }
}

TEST_F(CheckpointsOfProcess, an_append_goes_on_from_what_another_rank_has_written_last) {
  other_rank_writes("head.11", 1, "first");
  EXPECT_EQ(seen("head.11"), "first");
  other_rank_writes("head.11", 2, "second");
  const int fd = open("head.11", O_WRONLY | O_APPEND);
  ASSERT_EQ(::write(fd, ", third", 7), 7);
  ::close(fd);
  job->all->closed(fd);
  EXPECT_EQ(seen("head.11"), "second, third");
}

TEST_F(CheckpointsOfProcess, what_ranks_have_written_since_is_newer_than_what_this_one_wrote) {
  const int fd = open("head.12", O_WRONLY | O_CREAT);
  ::close(fd);
  job->all->closed(fd);
  for (const LocalName& name : files().list(State::closed))
    if (name.file == job->path("head.12")) {
      EXPECT_TRUE(files().move(name, State::closed, State::kept));
    }
  other_rank_writes("head.12", 2, "by all together");
  EXPECT_EQ(seen("head.12"), "by all together");
}

TEST_F(CheckpointsOfProcess, a_ranks_own_file_is_what_it_has_here) {
  const int fd = open("ck.13.1", O_WRONLY | O_CREAT);
  ASSERT_EQ(::write(fd, "own", 3), 3);
  ::close(fd);
  job->all->closed(fd);
  EXPECT_EQ(seen("ck.13.1"), "own");
}

// Of several processes of a node.

TEST_F(CheckpointsOfProcess, the_last_process_that_has_it_open_says_that_it_is_complete) {
  const int fd = open("head.20", O_WRONLY | O_CREAT);
  const auto name = [] { return files().newest(job->path("head.20"))->name; };
  ASSERT_TRUE(files().opened(name(), "1.0").ok()) << "another process";
  ::close(fd);
  job->all->closed(fd);
  EXPECT_TRUE(has(State::writing, "head.20")) << "it may be dead by now";
  const int again = open("head.20", O_WRONLY);
  EXPECT_TRUE(has(State::writing, "head.20"));
  ::close(again);
  job->all->closed(again);
  EXPECT_TRUE(has(State::closed, "head.20")) << "who opened it after its death went on from there";
}

TEST_F(CheckpointsOfProcess, an_open_that_fails_leaves_it_to_those_who_have_it) {
  const int fd = open("head.21", O_WRONLY | O_CREAT);
  Status status;
  EXPECT_EQ(job->all->open_to_write(file("head.21"), O_WRONLY | O_DIRECTORY, 0, status), -1);
  EXPECT_TRUE(has(State::writing, "head.21"));
  ::close(fd);
  job->all->closed(fd);
  EXPECT_TRUE(has(State::closed, "head.21"));
}

// Of several nodes.

TEST_F(CheckpointsOfProcess, a_file_that_another_node_has_open_is_refused_and_its_own_number_is_free) {
  const LocalFiles other(job->settings.local[0], job->run.id, job->run.attempt);
  ASSERT_TRUE(other.make().ok());
  const LocalName there{22, 0, 1, 1, job->path("head.22")};
  Job::write(other.path(State::writing, there), "half");
  Status status;
  EXPECT_EQ(job->all->open_to_write(file("head.22"), O_WRONLY | O_CREAT, 0644, status), -1);
  EXPECT_EQ(status.to_errno(), EBUSY);
  EXPECT_TRUE(catalog::says(status, "is open to write on node")) << status.sentence();
  for (const State state : checkpoint::all_states) EXPECT_FALSE(has(state, "head.22"));
  ASSERT_TRUE(other.move(there, State::writing, State::torn).ok());
  const int fd = open("head.22", O_WRONLY | O_CREAT);
  EXPECT_GE(fd, 0) << "it was torn";
  ::close(fd);
  job->all->closed(fd);
}

TEST_F(CheckpointsOfProcess, ranks_begin_no_second_file_of_one_place_together) {
  const auto begin = [](const char* name) { return job->all->begin_together(file(name), O_RDWR | O_CREAT, 0644, job->settings); };
  const auto first = begin("head.30");
  ASSERT_TRUE(first.ok()) << first.status().sentence();
  ASSERT_TRUE(job->all->end_together(*first, true).ok());
  const auto second = begin("head.030");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().to_errno(), EINVAL);
  EXPECT_TRUE(catalog::says(second.status(), "head.30 in its place")) << second.status().sentence();
  ASSERT_TRUE(job->all->remove(file("head.30")).ok());
  const auto then = begin("head.030");
  ASSERT_TRUE(then.ok()) << then.status().sentence();
  EXPECT_TRUE(job->all->end_together(*then, false).ok());
}

TEST_F(CheckpointsOfProcess, a_rank_writes_its_file_anew_without_asking_any_other_node) {
  Settings away = job->settings;
  for (std::string& node : away.local) node += "-that-is-lost";
  checkpoint::Run run = job->run;
  run.id = "00000000000000ff", run.from = checkpoint::Run::From{1, 50}, run.attempt = 2;
  const auto all =
      Checkpoints::make(away, *checkpoint::Patterns::parse(away.checkpoint, {}), run, {rank_here, ranks, job->settings.local[rank_here]});
  const auto opens = [&](const std::string& name, int flags) {
    Status status;
    const int fd = all->open_to_write(*all->match(job->path(name)), flags, 0644, status);
    if (fd >= 0) ::close(fd), all->closed(fd);
    return fd >= 0;
  };
  EXPECT_TRUE(opens("ck.51.1", O_WRONLY | O_CREAT | O_TRUNC));
  EXPECT_TRUE(opens("ck.51.1", O_WRONLY | O_CREAT | O_TRUNC)) << "once more, and it is here";
  EXPECT_FALSE(opens("ck.50.1", O_WRONLY | O_CREAT | O_TRUNC)) << "the attempt began with that step, and its file is to be had of the nodes";
  EXPECT_FALSE(opens("ck.52.1", O_WRONLY | O_CREAT)) << "it may be there, and would be gone on from";
  EXPECT_FALSE(opens("ck.51.0", O_WRONLY | O_CREAT | O_TRUNC)) << "another rank's, which may have written it on its node";
}

TEST_F(CheckpointsOfProcess, the_number_of_no_rank_is_refused_before_anything_is_written) {
  Status status;
  EXPECT_EQ(job->all->open_to_write(file("ck.14.2"), O_WRONLY | O_CREAT, 0644, status), -1);
  EXPECT_EQ(status.to_errno(), EINVAL);
  EXPECT_TRUE(catalog::says(status, "gives the job 2 ranks, so only files numbered 0 to 1"));
  Job::write(job->path("plain"), "content");
  EXPECT_TRUE(catalog::says(job->all->take(job->path("plain"), file("ck.14.7")), "numbered 0 to 1"));
  for (const State state : checkpoint::all_states) EXPECT_FALSE(has(state, "ck.14.2") || has(state, "ck.14.7"));
  const int fd = open("ck.14.0", O_WRONLY | O_CREAT);
  EXPECT_GE(fd, 0) << "another rank's";
  ::close(fd);
  job->all->closed(fd);
}

}  // namespace
}  // namespace holdfast::frontend::posix
