// All targets of a file lay on one disk that was busy: six calls passed their deadline together, six targets were set aside, and
// the write was lost for "more than 2 of 6 units".
#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <utility>

#include "engine/members.hpp"
#include "target/memory.hpp"

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds deadline = 1s;

catalog::Located six_members() {
  catalog::Located located;
  located.manifest.geometry.scheme = layout::Scheme{.k = 4, .m = 2, .mirror = false};
  for (int i = 0; i < 6; ++i) {
    catalog::Member member;
    member.index = i;
    member.path = "t" + std::to_string(i);
    member.target = target::make_memory_target(std::make_shared<target::MemoryDirectory>(), member.path);
    member.lane = target::make_companion_lane(member.path, deadline);
    located.manifest.members.push_back({"", member.path, false, ""});
    located.members.push_back(std::move(member));
  }
  return located;
}

// The calls of the first `slow` members end when they are told to, others at once.
class Write {
 public:
  Write(int slow, int patience) : slow_(slow), members_(six_members(), patience) {}
  ~Write() { release(); }
  void release() {
    if (!std::exchange(released_, true)) gate_->set_value();
  }
  int losses() {
    members_.each([this](int member) -> MemberCall {
      return [open = open_, gate = gate_, wait = member < slow_](MemberHandle&) {
        if (wait) open.wait();
        return Status();
      };
    });
    return members_.lost_count();
  }

 private:
  const int slow_;
  std::shared_ptr<std::promise<void>> gate_ = std::make_shared<std::promise<void>>();
  std::shared_future<void> open_ = gate_->get_future().share();
  bool released_ = false;
  Members members_;
};

TEST(SlowTargets, that_are_all_late_together_lose_nothing) {
  Write write(6, 10);
  std::thread disk([&] {
    std::this_thread::sleep_for(deadline * 3 / 2);
    write.release();
  });
  EXPECT_EQ(write.losses(), 0);
  disk.join();
}

// As many as the file can miss are losses as before, whatever the patience.
TEST(SlowTargets, that_are_few_are_set_aside_at_their_deadline) { EXPECT_EQ(Write(2, 10).losses(), 2); }

TEST(SlowTargets, are_all_set_aside_at_once_without_patience) { EXPECT_EQ(Write(6, 1).losses(), 6); }

TEST(SlowTargets, of_which_none_ever_comes_back_are_set_aside) { EXPECT_EQ(Write(6, 10).losses(), 6); }

}  // namespace
}  // namespace holdfast::engine
