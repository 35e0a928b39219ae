// While a job runs: agents that end when nobody has been connected for a while are asked now and then. So they are there for a program that opens its
// first file late, or its next one. Those that are killed, and who would start them again with them, are started again, at most three times within a
// minute.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agent/restarts.hpp"
#include "base/config.hpp"
#include "cli/job/node_agents.hpp"
#include "target/agent_registry.hpp"

namespace holdfast::cli {

class AgentsInUse {
 public:
  // `job`: which of them may be started again, and how.
  AgentsInUse(const Settings& settings, JobAgents job);
  ~AgentsInUse();
  AgentsInUse(const AgentsInUse&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  struct Node {
    std::string name, directory;
    int process = 0;  // of the agent, where that is on this host
    bool was_silent = false;
    agent::Restarts restarts;
    bool left = false;  // it is started no more
  };
  void work();
  void ask_all();
  void look_here();
  Result<target::AgentNote> note_of(Node& node) const;
  bool ask(Node& node);
  void attend(Node node);
  void start(Node& node);
  bool stopping();

  const std::string registry_;
  const JobAgents job_;
  std::deque<Node> up_, silent_;  // of the thread
  uint64_t linger_s_ = 0;         // the shortest that an agent has told
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace holdfast::cli
