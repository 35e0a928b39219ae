// A pool may have thousands of nodes. Whoever looks at all of them has no process for each.
#include <atomic>
#include <filesystem>
#include <thread>

#include "catalog/probe.hpp"
#include "unit/catalog/forwarding_environment.hpp"
#include "unit/catalog/scene.hpp"

namespace holdfast::catalog {
namespace {

using namespace std::chrono_literals;

// Threads and companions: each companion has a thread of this process that waits for its end.
size_t tasks_of_this_process() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& one : fs::directory_iterator("/proc/self/task")) ++count;
  return count;
}

// Of nodes that are not there. Some keep silent until they are let go.
class NodesThatAreNotThere : public ForwardingEnvironment {
 public:
  explicit NodesThatAreNotThere(size_t silent) : ForwardingEnvironment(environment()), silent_(silent) {}
  Result<std::shared_ptr<target::Target>> open_target(const std::string& path, const target::DirectoryOptions&) override {
    const size_t now = ++looking_, number = ++asked_;
    note(most_, now), note(most_tasks_, tasks_of_this_process());
    if (number <= silent_) open_.wait(false);
    else std::this_thread::sleep_for(50ms);
    --looking_;
    return Status(Kind::lost, "no agent of " + path + " is known");
  }
  size_t asked() const { return asked_; }
  size_t most() const { return most_; }
  size_t most_tasks() const { return most_tasks_; }
  void let_go() {
    open_ = true;
    open_.notify_all();
  }

 private:
  static void note(std::atomic<size_t>& most, size_t now) {
    for (size_t before = most; before < now && !most.compare_exchange_weak(before, now);) continue;
  }
  const size_t silent_;
  std::atomic<size_t> looking_{0}, most_{0}, most_tasks_{0}, asked_{0};
  std::atomic<bool> open_{false};
};

std::vector<std::string> nodes(int count) {
  std::vector<std::string> all;
  for (int i = 1; i <= count; ++i) all.push_back("gone" + std::to_string(i) + ":/tmp");
  return all;
}

void eventually(const std::function<bool()>& fact) {
  for (int i = 0; i < 2000 && !fact(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(fact());
}

constexpr uint64_t deadline_ms = 60000;

TEST(ManyDirectories, are_looked_at_by_a_few_companions_which_end) {
  NodesThatAreNotThere there(0);
  const ReplacedEnvironment in_it(there);
  const size_t before = tasks_of_this_process();
  const auto probes = probe_directories(nodes(300), {}, deadline_ms);
  EXPECT_EQ(there.asked(), 300u);
  // 32 at a time. Where the machine is so busy that none has ended for a while there are as many again, but never all.
  EXPECT_LE(there.most(), 150u);
  EXPECT_LE(there.most_tasks(), before + 250);  // those that look, and those that are about to end
  for (const Probe& probe : probes) EXPECT_FALSE(probe.reachable());
  eventually([&] { return tasks_of_this_process() <= before; });  // though each lane is kept by its probe
}

TEST(ManyDirectories, that_keep_silent_do_not_hold_up_the_others) {
  NodesThatAreNotThere there(40);
  const ReplacedEnvironment in_it(there);
  std::thread look([] { (void)probe_directories(nodes(200), {}, deadline_ms); });
  eventually([&] { return there.asked() == 200; });
  there.let_go();
  look.join();
}

}  // namespace
}  // namespace holdfast::catalog
