// An agent that serves a directory over sockets, as a child of the test.
#pragma once
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "agent/start.hpp"
#include "target/address.hpp"
#include "target/agent_registry.hpp"
#include "unit/target/directory_fixture.hpp"

namespace holdfast::agent {

using target::Object;
using target::OpenMode;
using target::TemporaryDirectory;

inline Status write(Object& object, uint64_t offset, const std::string& text) {
  const iovec one{const_cast<char*>(text.data()), text.size()};
  return object.write(offset, {&one, 1});
}
inline std::string read(Object& object, uint64_t offset, size_t count) {
  std::string into(count, '\0');
  const iovec one{into.data(), into.size()};
  const auto got = object.read(offset, {&one, 1});
  into.resize(got.ok() ? *got : 0);
  return got.ok() ? into : got.status().sentence();
}

// An agent that is a child of this process. What it has to say when it begins; nothing where it cannot be asked.
inline std::string start_agent(const Orders& orders, pid_t& agent) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return "";
  agent = fork();
  if (agent == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // also when the test dies
    close(ends[0]);
    serve_agent(orders, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  char said[512] = "";
  (void)recv(ends[0], said, sizeof said - 1, MSG_WAITALL);
  close(ends[0]);
  return said;
}

inline void kill_agent(pid_t& agent) {
  if (agent <= 0) return;
  kill(agent, SIGKILL);
  waitpid(std::exchange(agent, 0), nullptr, 0);
}

class AgentOverSockets : public testing::Test {
 protected:
  void SetUp() override {
    setenv("HOLDFAST_AGENTS", (home_.path() + "/agents").c_str(), 1);
    begin();
  }
  void TearDown() override {
    end();
    unsetenv("HOLDFAST_AGENTS");
  }
  // What it has to say when it begins; nothing where it cannot be asked.
  std::string start(pid_t& agent) { return start_agent({"n1", home_.path() + "/agents", {directory_.path()}, reach_, 0}, agent); }
  void begin() { ASSERT_EQ(start(agent_), "ok\n"); }
  void end() { kill_agent(agent_); }
  std::string address() const { return "n1:" + directory_.path(); }
  std::shared_ptr<target::Target> open() {
    auto opened = target::open(address());
    EXPECT_TRUE(opened.ok()) << opened.status().sentence();
    return opened.ok() ? *opened : nullptr;
  }
  target::AgentNote note() { return *target::read_note(home_.path() + "/agents", "n1", directory_.path()); }

  transport::Reach reach_ = transport::Reach::loopback;
  TemporaryDirectory home_, directory_;
  pid_t agent_ = 0;
};

}  // namespace holdfast::agent
