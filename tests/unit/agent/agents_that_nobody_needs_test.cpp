// An agent ends when nobody has had a file there for a while, whatever became of those who have asked it something.
#include <poll.h>

#include <chrono>

#include "transport/link.hpp"
#include "unit/agent/agent_fixture.hpp"

namespace holdfast::agent {
namespace {

using target::AgentOp;

class AgentsThatNobodyNeeds : public AgentOverSockets {
 protected:
  void SetUp() override {
    setenv("HOLDFAST_AGENTS", registry().c_str(), 1);
    ASSERT_EQ(start_agent({"n1", registry(), {directory_.path()}, reach_, linger_s}, agent_), "ok\n");
    const auto secret = *target::read_secret(registry());
    ASSERT_TRUE(link_.connect(note().endpoints, target::agent_agreement(secret, note().id), 5000).ok());
    target::SessionId id;
    ASSERT_TRUE(transport::draw(id));
    target::AgentRequest begin;
    begin.quiet = 1;
    send(AgentOp::begin, begin, {reinterpret_cast<const char*>(id.data()), sizeof id});
  }
  // Bytes, or a name.
  void send(AgentOp op, target::AgentRequest request, std::string what = "") {
    request.op = uint16_t(op);
    (op == AgentOp::begin ? request.bulk_bytes : request.name_bytes) = uint32_t(what.size());
    const iovec out[] = {{&request, sizeof request}, {what.data(), what.size()}};
    ASSERT_TRUE(link_.send(out).ok());
  }
  void send(AgentOp op, uint32_t number, const std::string& name = "", uint16_t flags = 0) {
    target::AgentRequest request;
    request.number = number, request.flags = flags;
    send(op, request, name);
  }
  void receive() {
    target::AgentAnswer answer;
    iovec in{&answer, sizeof answer};
    ASSERT_TRUE(link_.receive({&in, 1}).ok());
    ASSERT_EQ(Kind(answer.kind), Kind::ok);
    std::string rest(answer.sentence_bytes + answer.bulk_bytes, '\0');
    in = {rest.data(), rest.size()};
    ASSERT_TRUE(link_.receive({&in, 1}).ok());
  }
  // As a process that is killed before it has read its answer: the kernel resets the connection.
  void vanish() {
    pollfd answer{link_.descriptor(), POLLIN, 0};
    ASSERT_EQ(poll(&answer, 1, 10000), 1);
    link_.close();
  }
  bool ends_within(std::chrono::seconds patience) {
    const auto give_up = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < give_up) {
      if (waitpid(agent_, nullptr, WNOHANG) == agent_) return agent_ = 0, true;
      usleep(10000);
    }
    return false;
  }
  std::string registry() const { return home_.path() + "/agents"; }

  static constexpr uint64_t linger_s = 1;
  transport::Link link_;
};

TEST_F(AgentsThatNobodyNeeds, end_though_who_asked_was_killed_with_an_answer_to_read) {
  send(AgentOp::about, 1);
  vanish();
  EXPECT_TRUE(ends_within(std::chrono::seconds(20)));
}

TEST_F(AgentsThatNobodyNeeds, stay_for_who_has_an_object_open_and_may_come_back) {
  send(AgentOp::attach, 1, directory_.path(), 0600);
  receive();
  send(AgentOp::open, 2, "o", uint16_t(OpenMode::create));
  receive();
  send(AgentOp::nothing, 3);
  vanish();
  EXPECT_FALSE(ends_within(std::chrono::seconds(3 * linger_s)));
}

}  // namespace
}  // namespace holdfast::agent
