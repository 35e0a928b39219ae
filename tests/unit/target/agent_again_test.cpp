// How an agent is started again: what is written down for that, and how often it is done.
#include "target/agent_again.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "target/agent_registry.hpp"
#include "unit/target/directory_fixture.hpp"

namespace holdfast::target {
namespace {

TEST(AgentAgain, is_read_as_it_was_written) {
  const AgentAgain again{"host mnt:[1] net:[2]", "node n1\ndirectory /a b\n\nx", {7, 8}};
  const auto read = decode_agent_again(encode(again));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->place, again.place);
  EXPECT_EQ(read->orders, again.orders);
  EXPECT_EQ(read->started, again.started);
  for (const char* damaged : {"", "holdfast-again 2\nplace a\n\n", "holdfast-again 1\n\n", "holdfast-again 1\nplace a\nstarted 1"})
    EXPECT_FALSE(decode_agent_again(damaged)) << damaged;
}

TEST(AgentAgain, is_done_three_times_within_a_minute) {
  AgentAgain again;
  EXPECT_TRUE(may_start(again, 100));
  EXPECT_TRUE(may_start(again, 110));
  EXPECT_TRUE(may_start(again, 120));
  EXPECT_FALSE(may_start(again, 159));
  EXPECT_TRUE(may_start(again, 160)) << "the first one is a minute ago";
  EXPECT_FALSE(may_start(again, 160));
  EXPECT_TRUE(may_start(again, 50)) << "a clock that was put back forbids nothing";
}

int starts = 0;

// In the order in which it is asked: without what is to be done nothing is, and nobody starts it elsewhere.
TEST(AgentAgain, is_done_at_its_place_alone_and_not_where_it_was_stopped) {
  const TemporaryDirectory home;
  setenv("HOLDFAST_AGENTS", home.path().c_str(), 1);
  std::filesystem::permissions(home.path(), std::filesystem::perms::owner_all);
  starts = 0;
  const AgentAgain again{this_place(), "node n1\ndirectory /served\n", {}};
  ASSERT_TRUE(write_again(home.path(), "n1", again).ok());
  EXPECT_FALSE(start_again("n1", "/served")) << "nobody starts any here";
  set_agent_starter([](const std::string&) { return ++starts, Status(Kind::io, "it does not come up"); });
  EXPECT_FALSE(start_again("n1", "/served"));
  EXPECT_EQ(starts, 1);
  EXPECT_FALSE(start_again("n1", "/other")) << "it would not serve that";
  EXPECT_FALSE(start_again("n2", "/served"));
  ASSERT_TRUE(write_again(home.path(), "n1", {"elsewhere", again.orders, {}}).ok());
  EXPECT_FALSE(start_again("n1", "/served"));
  EXPECT_EQ(starts, 1);
  ASSERT_TRUE(write_again(home.path(), "n1", again).ok());
  {
    const auto lives = open_registry(home.path()).value()->try_lock(lock_of_agent("n1"));
    EXPECT_FALSE(start_again("n1", "/served")) << "it lives, and does not answer";
  }
  EXPECT_EQ(starts, 1);
  forget_again(home.path(), "n1");
  EXPECT_FALSE(start_again("n1", "/served"));
  EXPECT_EQ(starts, 1);
  set_agent_starter(nullptr);
  unsetenv("HOLDFAST_AGENTS");
}

}  // namespace
}  // namespace holdfast::target
