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
  const std::string key = agent_key("n1", "/served");
  ASSERT_TRUE(write_again(home.path(), key, again).ok());
  EXPECT_FALSE(start_again("n1", "/served")) << "nobody starts any here";
  set_agent_starter([](const std::string&) { return ++starts, Status(Kind::io, "it does not come up"); });
  EXPECT_FALSE(start_again("n1", "/served"));
  EXPECT_EQ(starts, 1);
  EXPECT_FALSE(start_again("n1", "/other")) << "it would not serve that";
  EXPECT_FALSE(start_again("n2", "/served"));
  ASSERT_TRUE(write_again(home.path(), key, {"elsewhere", again.orders, {}}).ok());
  EXPECT_FALSE(start_again("n1", "/served"));
  EXPECT_EQ(starts, 1);
  ASSERT_TRUE(write_again(home.path(), key, again).ok());
  {
    const auto lives = open_registry(home.path()).value()->try_lock(lock_of_agent(key));
    EXPECT_FALSE(start_again("n1", "/served")) << "it lives, and does not answer";
  }
  EXPECT_EQ(starts, 1);
  forget_again(home.path(), key);
  EXPECT_FALSE(start_again("n1", "/served"));
  EXPECT_EQ(starts, 1);
  set_agent_starter(nullptr);
  unsetenv("HOLDFAST_AGENTS");
}

// Of another node, of another directory of the node, or of a release before directories had keys: none takes another one's place.
TEST(AgentRegistry, has_a_note_of_each_directory) {
  const TemporaryDirectory home;
  std::filesystem::permissions(home.path(), std::filesystem::perms::owner_all);
  const std::string& registry = home.path();
  const AgentNote one{"n.1", "host", {std::byte(1)}, 11, {"/a", "/b"}, "at\n"}, other{"n.1", "host", {std::byte(2)}, 12, {"/c"}, "at\n"};
  ASSERT_TRUE(write_note(registry, one).ok() && write_note(registry, other).ok());
  const std::string of_before = encode({"n.1", "host", {std::byte(3)}, 13, {"/a"}, "at\n"});
  ASSERT_TRUE(open_registry(registry).value()->put("n.1.agent", std::as_bytes(std::span(of_before)), false).ok());
  EXPECT_EQ(read_note(registry, "n.1", "/a")->process, 11);
  EXPECT_EQ(read_note(registry, "n.1", "/b/")->process, 11);
  EXPECT_EQ(read_note(registry, "n.1", "/c")->process, 12);
  EXPECT_EQ(read_note(registry, "n.1", "/d").status().kind(), Kind::not_found);
  const auto known = known_agents(registry);
  ASSERT_EQ(known.size(), 3u);
  for (const KnownAgent& agent : known) {
    EXPECT_EQ(agent.note.keys.size(), agent.note.process == 11 ? 2u : 1u);
    for (const std::string& key : agent.note.keys) EXPECT_EQ(node_of_key(key), "n.1");
  }
  remove_note(registry, one);
  EXPECT_EQ(read_note(registry, "n.1", "/b").status().kind(), Kind::not_found);
  EXPECT_EQ(known_agents(registry).size(), 2u);
}

}  // namespace
}  // namespace holdfast::target
