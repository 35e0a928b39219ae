// Clients that begin and do not go on: they hold up nobody, and what an agent keeps for them is bounded.
#include <fstream>

#include "target/agent_link.hpp"
#include "transport/link.hpp"
#include "unit/agent/agent_fixture.hpp"

namespace holdfast::agent {
namespace {

using Clock = std::chrono::steady_clock;

class SlowClients : public AgentOverSockets {
 protected:
  // Sanitizers keep what was freed: there nothing is told by it.
  uint64_t agent_memory() const {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0;
#endif
    uint64_t all = 0, resident = 0;
    std::ifstream("/proc/" + std::to_string(agent_) + "/statm") >> all >> resident;
    return resident * uint64_t(sysconf(_SC_PAGESIZE));
  }
  // One that has greeted, begun a session and attached to the directory.
  std::unique_ptr<transport::Link> connect() {
    auto link = std::make_unique<transport::Link>();
    const auto secret = *target::read_secret(home_.path() + "/agents");
    EXPECT_TRUE(link->connect(note().endpoints, target::agent_agreement(secret, note().id), 5000).ok());
    target::AgentRequest request;
    target::SessionId id;
    EXPECT_TRUE(transport::draw(id));
    request.op = uint16_t(target::AgentOp::begin), request.quiet = 1, request.bulk_bytes = sizeof id;
    const iovec out[] = {{&request, sizeof request}, {id.data(), sizeof id}};
    EXPECT_TRUE(link->send(out).ok());
    request = {};
    request.op = uint16_t(target::AgentOp::attach), request.number = 1, request.flags = 0600, request.name_bytes = uint32_t(directory_.path().size());
    begin_request(*link, request, bytes_of(directory_.path()));
    target::AgentAnswer answer;
    std::string machine(4096, '\0');
    iovec in{&answer, sizeof answer};
    EXPECT_TRUE(link->receive({&in, 1}).ok());
    in = {machine.data(), answer.bulk_bytes};
    EXPECT_TRUE(link->receive({&in, 1}).ok());
    return link;
  }
  // The first of so many bytes.
  static void begin_request(transport::Link& link, target::AgentRequest request, Bytes bytes) {
    const iovec out[] = {{&request, sizeof request}, {bytes.data(), bytes.size()}};
    EXPECT_TRUE(link.send(out).ok());
  }
  static Bytes bytes_of(const std::string& text) {
    const auto* from = reinterpret_cast<const std::byte*>(text.data());
    return {from, from + text.size()};
  }
  void expect_that_others_get_on() {
    const auto begun = Clock::now();
    const auto target = open();
    const auto object = *target->open("o", OpenMode::create);
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(write(*object, uint64_t(i), "x").ok());
    EXPECT_LT(Clock::now() - begun, std::chrono::seconds(10)) << "a stalled one is dropped after thirty";
  }
};

TEST_F(SlowClients, who_stops_in_mid_request_holds_up_nobody) {
  constexpr int clients = 200;
  const uint64_t before = agent_memory();
  std::vector<std::unique_ptr<transport::Link>> slow;
  target::AgentRequest request;
  request.op = uint16_t(target::AgentOp::write), request.number = 2, request.bulk_bytes = target::most_bulk_bytes;
  for (int i = 0; i < clients; ++i) {
    slow.push_back(connect());
    begin_request(*slow.back(), request, Bytes(target::most_bulk_bytes - 1, std::byte(1)));
  }
  expect_that_others_get_on();
  EXPECT_LE(agent_memory(), before + (96u << 20)) << "however many they are";
  slow.clear();
  expect_that_others_get_on();
}

TEST_F(SlowClients, who_does_not_take_its_answer_holds_up_nobody) {
  const auto object = *open()->open("large", OpenMode::create);
  ASSERT_TRUE(write(*object, 0, std::string(1 << 20, 'x')).ok());
  std::vector<std::unique_ptr<transport::Link>> slow;
  for (int i = 0; i < 16; ++i) {
    slow.push_back(connect());
    target::AgentRequest request;
    request.op = uint16_t(target::AgentOp::get), request.length = 2 << 20, request.name_bytes = 5;
    for (request.number = 2; request.number < 12; ++request.number) begin_request(*slow.back(), request, bytes_of("large"));
  }
  expect_that_others_get_on();
}

// Of one client that begins to put one small object after the other, and ends none.
TEST_F(SlowClients, what_is_begun_and_not_ended_is_bounded) {
  const auto secret = *target::read_secret(home_.path() + "/agents");
  const auto channel = *target::begin_session(target::line_to(note().endpoints, target::agent_agreement(secret, note().id), 5000));
  ASSERT_TRUE(target::attach_to_agent(channel, directory_.path(), "n1", 0600).ok());
  const Bytes piece(target::most_bulk_bytes, std::byte(3));
  const iovec bulk{const_cast<std::byte*>(piece.data()), piece.size()};
  const uint64_t before = agent_memory();
  for (int i = 0; i < 200; ++i) {
    target::AgentRequest request;
    target::AgentAnswer answer;
    std::string sentence;
    request.op = uint16_t(target::AgentOp::append);
    ASSERT_TRUE(channel->ask(request, "m" + std::to_string(i), {&bulk, 1}, answer, sentence, {}).ok());
    EXPECT_EQ(Kind(answer.kind), Kind::ok) << sentence;
  }
  EXPECT_LE(agent_memory(), before + (64u << 20));
}

// What large calls have taken is given back.
TEST_F(SlowClients, idle_ones_hold_no_memory) {
  const uint64_t before = agent_memory();
  std::vector<std::shared_ptr<target::Target>> targets;
  const mode_t mask = umask(0);
  for (int i = 0; i < 8; ++i) {
    target::DirectoryOptions options;
    options.mode = 0600 + i % 8;  // a connection each
    targets.push_back(*target::open(address(), options));
    ASSERT_TRUE(targets.back()->put("large", Bytes(24 << 20, std::byte(i)), false).ok());
    EXPECT_EQ(targets.back()->get("large", 32 << 20).value().size(), 24u << 20);
  }
  umask(mask);
  EXPECT_EQ(ask(home_.path() + "/agents", note())->clients, 8u);
  EXPECT_LE(agent_memory(), before + (64u << 20));
}

}  // namespace
}  // namespace holdfast::agent
