// An agent that is being started again is waited for by who opens its directory in a job; one that stays away is missed once.
#include <chrono>
#include <thread>

#include "target/agent_again.hpp"
#include "unit/agent/agent_fixture.hpp"

namespace holdfast::agent {
namespace {

constexpr uint64_t for_ever_ms = 600000;

class AgentsThatComeUpAgain : public AgentOverSockets {
 protected:
  void SetUp() override {
    AgentOverSockets::SetUp();
    setenv("HOLDFAST_JOB", "0123456789abcdef", 1);
    ASSERT_TRUE(target::write_again(registry(), key(), {"another-host", "", {}}).ok()) << "it is not this process's to start";
  }
  void TearDown() override {
    unsetenv("HOLDFAST_JOB");
    AgentOverSockets::TearDown();
  }
  std::string registry() const { return home_.path() + "/agents"; }
  std::string key() const { return target::agent_key("n1", directory_.path()); }
  Status open_within(uint64_t patience_ms) const {
    target::DirectoryOptions options;
    options.agent_patience_ms = patience_ms;
    return target::open(address(), options).status();
  }
};

TEST_F(AgentsThatComeUpAgain, are_waited_for) {
  end();
  Status opened;
  std::thread program([&] { opened = open_within(for_ever_ms); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  begin();
  program.join();
  EXPECT_TRUE(opened.ok()) << opened.sentence();
}

TEST_F(AgentsThatComeUpAgain, are_missed_once_for_each_start) {
  end();
  EXPECT_EQ(open_within(200).kind(), Kind::lost);
  EXPECT_EQ(open_within(for_ever_ms).kind(), Kind::lost) << "at once";
  begin();
  EXPECT_TRUE(open_within(0).ok());
  end();
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(open_within(200).kind(), Kind::lost);
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(200)) << "another one was killed";
}

TEST_F(AgentsThatComeUpAgain, are_not_waited_for_where_nobody_starts_them) {
  end();
  target::AgentNote dead = note();
  dead.left_dead = true;
  ASSERT_TRUE(target::write_note(registry(), dead).ok());
  EXPECT_EQ(open_within(for_ever_ms).kind(), Kind::lost) << "it was killed too often";
  dead.left_dead = false;
  ASSERT_TRUE(target::write_note(registry(), dead).ok());
  unsetenv("HOLDFAST_JOB");
  EXPECT_EQ(open_within(for_ever_ms).kind(), Kind::lost) << "a tool says at once what there is";
  setenv("HOLDFAST_JOB", "0123456789abcdef", 1);
  target::forget_again(registry(), key());
  EXPECT_EQ(open_within(for_ever_ms).kind(), Kind::lost) << "it was stopped";
}

}  // namespace
}  // namespace holdfast::agent
