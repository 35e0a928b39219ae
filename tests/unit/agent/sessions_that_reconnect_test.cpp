// A session over connections that break: whatever happens to a request, it is carried out once, and nothing comes in late.
#include <gtest/gtest.h>

#include "target/agent.hpp"
#include "target/memory.hpp"
#include "unit/agent/fake_agent.hpp"

namespace holdfast::agent {
namespace {

using target::AgentOp;
using target::OpenMode;

target::SessionId id_of(int number) {
  target::SessionId id{};
  id[0] = std::byte(number);
  return id;
}

class Reconnecting : public testing::Test {
 protected:
  void SetUp() override { restart(); }
  void restart() {
    const auto served = std::make_shared<const Served>(Served{{"/d", [this](uint32_t) { return target::make_memory_target(memory_, "/d"); }}});
    agent_ = std::make_shared<FakeAgent>(served, ++starts_);
  }
  std::shared_ptr<target::SessionChannel> connect(int number, std::vector<target::SessionId> instead = {}) {
    auto channel = std::make_shared<target::SessionChannel>(id_of(number), std::move(instead), FakeAgent::line_to(agent_));
    EXPECT_TRUE(channel->begin().ok());
    return channel;
  }
  std::shared_ptr<target::Target> attach(std::shared_ptr<target::SessionChannel> channel) {
    return *target::attach_to_agent(std::move(channel), "/d", "n1:/d", 0600);
  }
  // The n-th request that is made from now on has it.
  void the_next(int n, Mishap what) {
    agent_->mishap = [n, what](const target::AgentRequest&) mutable { return --n == 0 ? what : Mishap::none; };
  }
  static Status write(target::Object& object, uint64_t offset, const std::string& text) {
    const iovec one{const_cast<char*>(text.data()), text.size()};
    return object.write(offset, {&one, 1});
  }
  static std::string read(target::Object& object) {
    std::string into(100, '\0');
    const iovec one{into.data(), into.size()};
    const auto got = object.read(0, {&one, 1});
    into.resize(got.ok() ? *got : 0);
    return got.ok() ? into : got.status().sentence();
  }

  std::shared_ptr<target::MemoryDirectory> memory_ = std::make_shared<target::MemoryDirectory>();
  std::shared_ptr<FakeAgent> agent_;
  uint64_t starts_ = 0;
};

constexpr Mishap mishaps[] = {Mishap::torn, Mishap::lost, Mishap::delayed, Mishap::unanswered, Mishap::repeated};

// At each request in turn: locks, open objects, handles that nobody waited for, and what comes in pieces are still there.
TEST_F(Reconnecting, a_job_goes_on_wherever_its_connection_is_reset) {
  for (const Mishap mishap : mishaps)
    for (int n = 1;; ++n) {
      memory_ = std::make_shared<target::MemoryDirectory>();
      restart();
      int made = 0;
      agent_->mishap = [&](const target::AgentRequest&) { return ++made == n ? mishap : Mishap::none; };
      SCOPED_TRACE(testing::Message() << "mishap " << int(mishap) << " at request " << n);
      const auto target = attach(connect(1));
      const auto other = target::make_memory_target(memory_, "/d");
      auto lock = target->try_lock("lock");
      ASSERT_TRUE(lock.ok()) << lock.status().sentence();
      const auto object = *target->open_to_write("o", target::Pages::own);
      const auto posted = *target->open_to_write("p", target::Pages::own);
      ASSERT_TRUE(write(*object, 0, "one ").ok());
      EXPECT_EQ(other->try_lock("lock").status().kind(), Kind::busy);
      ASSERT_TRUE(write(*object, 4, "two").ok());
      ASSERT_TRUE(write(*posted, 0, "posted").ok());
      agent_->deliver_late();
      const Bytes both = Bytes{std::byte('2'), std::byte('!')};
      const auto at = [&](uint64_t offset) { return target::Target::ObjectWrite{object, offset, {{const_cast<std::byte*>(&both[offset - 6]), 1}}}; };
      ASSERT_TRUE(target->write_together(std::vector{at(6), at(7)}).ok());
      ASSERT_TRUE(target->put("large", Bytes((2 << 20) + 5, std::byte(7)), false).ok());
      EXPECT_EQ(target->get("large", 4 << 20).value(), Bytes((2 << 20) + 5, std::byte(7)));
      ASSERT_TRUE(target->remove("large").ok()) << "removed once: a second time it would not be found";
      EXPECT_EQ(read(*object), "one tw2!");
      EXPECT_EQ(read(*posted), "posted");
      EXPECT_EQ(other->try_lock("lock").status().kind(), Kind::busy);
      ASSERT_TRUE(target->settle(std::vector{object, posted}, {}, true).ok());
      lock->reset();
      EXPECT_TRUE(target->check_identity().ok());
      EXPECT_TRUE(other->try_lock("lock").ok());
      agent_->deliver_late();
      if (made < n) break;
    }
}

// Nothing was answered yet: the agent may have heard of the session or not, and of the first request.
TEST_F(Reconnecting, a_reset_in_the_first_round_trip_is_not_seen) {
  for (const Mishap mishap : mishaps)
    for (const int first : {1, 2}) {
      restart();
      SCOPED_TRACE(testing::Message() << "mishap " << int(mishap) << " at frame " << first);
      agent_->at_begins = true;
      the_next(first, mishap);
      const auto channel = std::make_shared<target::SessionChannel>(id_of(1), std::vector<target::SessionId>(), FakeAgent::line_to(agent_));
      ASSERT_TRUE(channel->begin().ok());
      const auto target = target::attach_to_agent(channel, "/d", "n1:/d", 0600);
      ASSERT_TRUE(target.ok()) << target.status().sentence();
      EXPECT_TRUE((*target)->check_identity().ok());
      EXPECT_TRUE((*target)->try_lock("lock").ok()) << "of one session";
    }
}

TEST_F(Reconnecting, a_reset_between_two_calls_is_not_seen) {
  const auto target = attach(connect(1));
  const auto object = *target->open("o", OpenMode::create);
  const auto lock = target->try_lock("lock");
  for (int i = 0; i < 5; ++i) {
    agent_->reset_all();
    EXPECT_TRUE(write(*object, uint64_t(i), std::to_string(i)).ok());
  }
  EXPECT_EQ(read(*object), "01234");
  EXPECT_EQ(agent_->connections, 6u);
  EXPECT_EQ(target::make_memory_target(memory_, "/d")->try_lock("lock").status().kind(), Kind::busy);
}

// Who was away for too long has lost its locks: what it would change under them is refused, and so is all else.
TEST_F(Reconnecting, nothing_is_changed_under_a_lock_that_has_ended) {
  const auto channel = connect(1);
  const auto target = attach(channel);
  const auto lock = target->try_lock("lock");
  ASSERT_TRUE(lock.ok());
  agent_->reset_all();
  agent_->give_up_those_away();
  const auto other = attach(connect(2));
  const auto theirs = other->try_lock("lock");
  EXPECT_TRUE(theirs.ok());
  EXPECT_FALSE(target->put("manifest", Bytes(3), true).ok());
  EXPECT_TRUE(channel->broken());
  EXPECT_FALSE(target->remove("manifest").ok());
  EXPECT_EQ(memory_->object_names(), std::vector<std::string>{"lock"});
}

// A disk that hangs holds a call; the client has given it up and comes anew. Before it is answered anything, the old call has ended.
TEST_F(Reconnecting, a_new_session_waits_for_the_calls_of_the_one_in_whose_place_it_comes) {
  Seats seats(std::make_shared<const Served>());
  std::vector<Seats::SeatPtr> over;
  ASSERT_TRUE(seats.begin(1, id_of(1), false, {}).status.ok());
  ASSERT_EQ(seats.when(1, over), Seats::When::now);
  target::AgentRequest write;
  write.op = uint16_t(AgentOp::write), write.number = 1;
  Seats::SeatPtr held, seat;
  ASSERT_EQ(seats.take(1, write, held), Seats::Verdict::fresh);
  const target::SessionId old[] = {id_of(1)};
  const auto begun = seats.begin(2, id_of(2), false, old);
  EXPECT_EQ(begun.fenced, std::vector<Seats::Connection>{1});
  EXPECT_EQ(seats.when(2, over), Seats::When::later);
  EXPECT_EQ(seats.begin(3, id_of(1), true, {}).status.kind(), Kind::stale) << "that session is over";
  EXPECT_FALSE(seats.answered(1, write, std::make_shared<const Session::Reply>())) << "nobody hears it any more";
  EXPECT_EQ(seats.when(2, over), Seats::When::now);
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0], held);
  write.number = 2;
  EXPECT_EQ(seats.take(1, write, seat), Seats::Verdict::fenced);
}

// The connection that waited for a hanging call breaks, or is given up as well: who comes in its place waits for that call, too.
TEST_F(Reconnecting, who_fences_one_that_waits_waits_for_the_same_calls) {
  for (const bool go_on : {true, false}) {
    Seats seats(std::make_shared<const Served>());
    std::vector<Seats::SeatPtr> over;
    Seats::SeatPtr held;
    ASSERT_TRUE(seats.begin(1, id_of(1), false, {}).status.ok());
    target::AgentRequest write;
    write.op = uint16_t(AgentOp::write), write.number = 1;
    ASSERT_EQ(seats.when(1, over), Seats::When::now);
    ASSERT_EQ(seats.take(1, write, held), Seats::Verdict::fresh);
    const target::SessionId first[] = {id_of(1)}, both[] = {id_of(1), id_of(2)};
    ASSERT_TRUE(seats.begin(2, id_of(2), false, first).status.ok());
    ASSERT_EQ(seats.when(2, over), Seats::When::later);
    ASSERT_TRUE((go_on ? seats.begin(3, id_of(2), true, {}) : seats.begin(3, id_of(3), false, both)).status.ok());
    EXPECT_EQ(seats.when(3, over), Seats::When::later);
    EXPECT_FALSE(seats.answered(1, write, std::make_shared<const Session::Reply>()));
    EXPECT_EQ(seats.when(3, over), Seats::When::now);
    ASSERT_FALSE(over.empty()) << "it is to be ended";
    EXPECT_NE(std::find(over.begin(), over.end(), held), over.end());
  }
}

TEST_F(Reconnecting, of_two_that_take_a_session_over_the_later_one_gets_it) {
  Seats seats(std::make_shared<const Served>());
  std::vector<Seats::SeatPtr> over;
  Seats::SeatPtr seat;
  ASSERT_TRUE(seats.begin(1, id_of(1), false, {}).status.ok());
  target::AgentRequest write;
  write.op = uint16_t(AgentOp::write), write.number = 1;
  ASSERT_EQ(seats.take(1, write, seat), Seats::Verdict::fresh);
  EXPECT_EQ(seats.begin(2, id_of(1), true, {}).fenced, std::vector<Seats::Connection>{1});
  EXPECT_EQ(seats.when(2, over), Seats::When::later);
  EXPECT_EQ(seats.begin(3, id_of(1), true, {}).fenced, std::vector<Seats::Connection>{2});
  EXPECT_EQ(seats.when(2, over), Seats::When::fenced);
  EXPECT_EQ(seats.when(3, over), Seats::When::later);
  EXPECT_EQ(seats.leave(1, true).seat, nullptr) << "the session is not its own any more";
  EXPECT_EQ(seats.leave(2, true).seat, nullptr);
}

// Numbers count up by one: what is replayed is answered as before or hung up on.
TEST_F(Reconnecting, a_replayed_request_is_not_carried_out) {
  Seats seats(std::make_shared<const Served>());
  Seats::SeatPtr seat;
  ASSERT_TRUE(seats.begin(1, id_of(1), false, {}).status.ok());
  target::AgentRequest request;
  request.op = uint16_t(AgentOp::remove);
  for (request.number = 1; request.number <= 3; ++request.number) {
    ASSERT_EQ(seats.take(1, request, seat), Seats::Verdict::fresh);
    seats.answered(1, request, std::make_shared<const Session::Reply>());
  }
  request.number = 3;
  EXPECT_EQ(seats.take(1, request, seat), Seats::Verdict::again);
  for (const uint32_t number : {0u, 1u, 2u, 5u, ~0u}) {
    request.number = number;
    EXPECT_EQ(seats.take(1, request, seat), Seats::Verdict::senseless) << number;
  }
  request.number = 4, request.op = uint16_t(AgentOp::begin);
  EXPECT_EQ(seats.take(1, request, seat), Seats::Verdict::senseless);
  EXPECT_EQ(seats.take(9, request, seat), Seats::Verdict::senseless) << "without a session";
  EXPECT_FALSE(seats.begin(1, id_of(2), false, {}).status.ok()) << "one connection, one session";
}

TEST_F(Reconnecting, another_start_of_the_agent_loses_the_session) {
  const auto target = attach(connect(1));
  const auto object = *target->open("o", OpenMode::create);
  ASSERT_TRUE(write(*object, 0, "x").ok());
  const auto before = agent_;
  before->reset_all();
  before->refuses = true;
  EXPECT_EQ(object->sync().kind(), Kind::io);
  before->refuses = false;
  EXPECT_EQ(object->sync().kind(), Kind::io) << "it was given up";
}

// More closes than are remembered: now and then one is waited for, and after a reset none is lost.
TEST_F(Reconnecting, posts_without_number_are_sent_again) {
  const auto target = attach(connect(1));
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<target::Object>> objects;
    for (int i = 0; i < 200; ++i) objects.push_back(*target->open_to_write("o" + std::to_string(i), target::Pages::own));
    agent_->reset_all();
    for (auto& object : objects) ASSERT_TRUE(write(*object, 0, "x").ok());
    objects.clear();
  }
  EXPECT_EQ(memory_->object_names().size(), 200u);
}

}  // namespace
}  // namespace holdfast::agent
