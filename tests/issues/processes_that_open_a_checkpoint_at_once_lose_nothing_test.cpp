// Processes of a node open one file of a checkpoint at the same time, none of them truncates it, and each writes a part of its own. One that had looked before
// another one closed the file made the same version once more, without the other one's part, and put it over that.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "catalog/user_files.hpp"
#include "checkpoint/protector.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/pool_on_site.hpp"

namespace holdfast::checkpoint {
namespace {

using Front = frontend::posix::Checkpoints;

// One that lives, and does nothing: whose name in "openers" one of the simulated processes has.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  std::string name() const { return process_name(pid_); }

 private:
  const pid_t pid_;
};

class AtOnce : public ::testing::Test {
 protected:
  static constexpr size_t processes = 4, opens = 2;

  // Each writes its letter at places of its own, open after open.
  static void write_parts(sim::Site& site, Front& front, const std::string& path, size_t process) {
    for (size_t turn = 0; turn < opens; ++turn) {
      Status status;
      const int fd = front.open_to_write(*front.match(path), O_RDWR | O_CREAT, 0644, status);
      ASSERT_GE(fd, 0) << status.sentence() << ", " << strerror(errno);
      const char letter = char('A' + process);
      EXPECT_EQ(site.pwrite(fd, &letter, 1, turn * processes + process), 1);
      site.close(fd);
      front.closed(fd);
    }
  }

  void in_one_order(uint64_t seed, const std::string& pattern, const std::string& path, bool is_protected) {
    sim::simulated_clock.begin_anew();
    sim::PoolOnSite pool(seed);
    Settings& settings = pool.settings;
    settings.checkpoint = {pattern};
    const checkpoint::Run run{"00000000000000ab", 1, {}, false, settings.local};
    std::vector<std::unique_ptr<Front>> fronts;
    for (const Sleeper& sleeper : sleepers)
      fronts.push_back(
          Front::make(settings, *Patterns::parse(settings.checkpoint), run, {.number = 0, .of = 1, .node = "n1:/n1", .process = sleeper.name()}));
    sim::Schedule schedule(seed);
    for (size_t process = 0; process < processes; ++process) schedule.add([&, process] { write_parts(pool.site, *fronts[process], path, process); });
    if (is_protected)
      schedule.add([&] {
        Protector protector(settings, run, "n1:/n1", [](const std::string&) {});
        ASSERT_TRUE(protector.begin().ok());
        for (int looks = 0; looks < 4; ++looks) protector.work();
      });
    schedule.run();
    const auto seen = fronts[0]->look(*fronts[0]->match(path));
    ASSERT_TRUE(seen.ok() && seen->what == Front::Sight::local) << "seed " << seed;
    const auto content = catalog::read_beginning(seen->path, 100);
    ASSERT_TRUE(content.ok()) << "seed " << seed;
    EXPECT_EQ(*content, "ABCDABCD") << "seed " << seed << ", " << seen->path;
    EXPECT_TRUE(LocalFiles("/n1", run.id, run.attempt).list(State::writing).empty()) << "seed " << seed;
  }

  void in_many_orders(const std::string& pattern, const std::string& path, bool is_protected) {
    constexpr uint64_t orders = 200;
    for (uint64_t seed = 1; seed <= orders && !HasFailure(); ++seed) in_one_order(seed, pattern, path, is_protected);
  }

  std::array<Sleeper, processes> sleepers;
};

// Of two nodes: the two of the first one may both have it open. Who is refused has written nothing, and whose close has succeeded has lost nothing.
TEST_F(AtOnce, beside_another_node_that_is_refused) {
  constexpr uint64_t orders = 300;
  size_t refused = 0, closed = 0;
  for (uint64_t seed = 1; seed <= orders && !HasFailure(); ++seed) {
    sim::simulated_clock.begin_anew();
    sim::PoolOnSite pool(seed);
    Settings& settings = pool.settings;
    settings.checkpoint = {"/data/ck.{step}"};
    settings.lock_patience_ms = 2000;
    const checkpoint::Run run{"00000000000000ab", 1, {}, false, settings.local};
    const std::string nodes[] = {"n1:/n1", "n1:/n1", "n2:/n2"}, path = "/data/ck.1";
    std::vector<std::unique_ptr<Front>> fronts;
    for (size_t i = 0; i < std::size(nodes); ++i)
      fronts.push_back(Front::make(settings, *Patterns::parse(settings.checkpoint), run,
                                   {.number = uint32_t(i), .of = 3, .node = nodes[i], .process = sleepers[i].name()}));
    sim::Schedule schedule(seed);
    std::vector<bool> wrote(std::size(nodes));
    for (size_t i = 0; i < std::size(nodes); ++i)
      schedule.add([&, i] {
        Status status;
        const int fd = fronts[i]->open_to_write(*fronts[i]->match(path), O_RDWR | O_CREAT, 0644, status);
        if (fd < 0) return void(++refused);
        const char letter = char('A' + i);
        EXPECT_EQ(pool.site.pwrite(fd, &letter, 1, i), 1);
        pool.site.close(fd);
        fronts[i]->closed(fd);
        wrote[i] = true, ++closed;
      });
    schedule.run();
    for (size_t i = 0; i < std::size(nodes); ++i) {
      if (!wrote[i]) continue;
      const LocalFiles files(nodes[i].substr(3), run.id, run.attempt);
      const auto newest = files.newest(path);
      ASSERT_TRUE(newest) << "seed " << seed << ", process " << i;
      const auto content = catalog::read_beginning(files.path(newest->state, newest->name), 100);
      ASSERT_TRUE(content.ok() && content->size() > i) << "seed " << seed << ", process " << i;
      EXPECT_EQ((*content)[i], char('A' + i)) << "seed " << seed;
    }
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(closed, 0u);
}

TEST_F(AtOnce, where_it_is_not_there_yet) { in_many_orders("/data/ck.{step}", "/data/ck.1", false); }
TEST_F(AtOnce, while_it_is_protected) { in_many_orders("/data/ck.{step}", "/data/ck.1", true); }
TEST_F(AtOnce, where_it_is_a_ranks_own) { in_many_orders("/data/ck.{step}.{rank}", "/data/ck.1.0", true); }
TEST_F(AtOnce, where_it_has_no_step) { in_many_orders("/data/restart.{rank}", "/data/restart.0", true); }

}  // namespace
}  // namespace holdfast::checkpoint
