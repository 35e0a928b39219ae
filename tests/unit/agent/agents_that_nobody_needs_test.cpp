// An agent ends when nobody has had a file there for a while, whatever became of those who have asked it something.
#include <fcntl.h>
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
    begin_to_serve();
    begin_session();
  }
  void begin_to_serve() {
    setenv("HOLDFAST_AGENTS", registry().c_str(), 1);
    ASSERT_EQ(start_agent({"n1", registry(), {directory_.path()}, reach_, linger_s}, agent_), "ok\n");
  }
  void begin_session() {
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
  void open_object() {
    send(AgentOp::attach, 1, directory_.path(), 0600);
    receive();
    send(AgentOp::open, 2, "o", uint16_t(OpenMode::create));
    receive();
  }
  void wait_for_answer() {
    pollfd answer{link_.descriptor(), POLLIN, 0};
    ASSERT_EQ(poll(&answer, 1, 10000), 1);
  }
  // As a process that is killed before it has read its answer: the kernel resets the connection.
  void vanish() {
    wait_for_answer();
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
  open_object();
  send(AgentOp::nothing, 3);
  vanish();
  EXPECT_FALSE(ends_within(std::chrono::seconds(3 * linger_s)));
}

// By a socket of the node, whose kernel knows which process was at its other end.
class AgentsOfKilledProcesses : public AgentsThatNobodyNeeds {
 protected:
  AgentsOfKilledProcesses() { reach_ = transport::Reach::node; }
  // The connection of another process, which has an object open there and does not read the answer that it gets. This process has no copy of it.
  void SetUp() override {
    begin_to_serve();
    int ready[2];
    ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
    client_ = fork();
    if (client_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      hold_an_object(ready[1]);
    }
    close(ready[1]);
    char word = 0;
    ASSERT_EQ(::read(ready[0], &word, 1), 1);
    close(ready[0]);
  }
  void TearDown() override {
    if (client_ > 0) end_client();
    AgentsThatNobodyNeeds::TearDown();
  }
  [[noreturn]] void hold_an_object(int ready) {
    begin_session();
    open_object();
    send(AgentOp::nothing, 3);
    wait_for_answer();
    if (!HasFailure()) (void)!::write(ready, "1", 1);
    for (;;) pause();
  }
  void end_client() {
    kill(client_, SIGKILL);
    waitpid(std::exchange(client_, 0), nullptr, 0);
  }

  pid_t client_ = 0;
};

TEST_F(AgentsOfKilledProcesses, stay_while_it_lives) { EXPECT_FALSE(ends_within(std::chrono::seconds(3 * linger_s))); }

TEST_F(AgentsOfKilledProcesses, end_though_it_had_an_object_open) {
  end_client();
  EXPECT_TRUE(ends_within(std::chrono::seconds(20)));
}

TEST_F(AgentsOfKilledProcesses, end_though_nobody_has_asked_for_its_end_yet) {
  kill(client_, SIGKILL);
  EXPECT_TRUE(ends_within(std::chrono::seconds(20)));
}

}  // namespace
}  // namespace holdfast::agent
