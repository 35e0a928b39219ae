// Targets as node agents serve them: the client's and the agent's side of the real protocol, and what happens to connections between them.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "target/target.hpp"
#include "unit/agent/fake_agent.hpp"

namespace holdfast::sim {

class Agents {
 public:
  // Connections are reset now and then from here on, before and after requests are carried out; requests come late and twice. Nobody may see it.
  void begin_weather(uint64_t seed) { weather_.emplace(seed); }
  // A connection of the running process to the place's agent, which has that storage.
  Result<std::shared_ptr<target::Target>> attach(std::shared_ptr<target::Target> storage, int place, const std::string& read_first = "");
  // The agent is killed and started again: sessions end, and the locks of theirs though their owners live.
  void restart(int place);
  // At the n-th request from now on, which is carried out or not, the client is cut off for longer than the agent waits for it.
  void lose_a_session(int place, int64_t n) { nodes_[place].losing = n; }
  void heal(int place) { nodes_[place].losing = 0; }
  // Of one place: the most that anybody waited for its answers since.
  uint64_t most_round_trips() const;
  uint64_t all_round_trips() const;  // of all places together: requests
  void count_anew();
  uint64_t resets() const { return resets_; }
  uint64_t sums() const { return sums_; }  // that agents asked others for

 private:
  struct Node {
    std::shared_ptr<agent::FakeAgent> agent;
    std::shared_ptr<target::Target> storage;  // of the session that begins
    std::string label;
    int64_t losing = 0;
  };
  void start(Node& node, const std::string& label);
  Result<std::unique_ptr<agent::Peer>> open_peer(const std::string& address);
  agent::Mishap happens_to_a_request(Node& node);
  std::map<int, Node> nodes_;
  std::optional<std::mt19937_64> weather_;
  uint64_t resets_ = 0, starts_ = 0, sessions_ = 0, sums_ = 0;
};

}  // namespace holdfast::sim
