// Targets as node agents serve them: the client's and the agent's side of the real protocol, and what happens to connections between them.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "target/target.hpp"
#include "unit/agent/fake_agent.hpp"

namespace holdfast::sim {

class Agents {
 public:
  Agents();
  // Connections are reset now and then from here on, before and after requests are carried out; requests come late and twice. Nobody may see it.
  void begin_weather(uint64_t seed) { weather_.emplace(seed); }
  // Others go on while somebody waits for an agent: requests take their time, arrive by connections that are given up, and find no way.
  void begin_network(std::function<void(std::function<void()>)> in_background);
  bool has_network() const { return bool(in_background_); }
  // A connection of the running process to the place's agent, which has that storage.
  Result<std::shared_ptr<target::Target>> attach(std::shared_ptr<target::Target> storage, int place, const std::string& read_first = "") {
    return attach(std::move(storage), place, read_first, false);
  }
  // The agent is killed and started again: sessions end, and the locks of theirs though their owners live.
  void restart(int place);
  // At the n-th request from now on, which is carried out or not, the client is cut off for longer than the agent waits for it.
  void lose_a_session(int place, int64_t n) { nodes_[place].losing = n; }
  void heal(int place) { nodes_[place].losing = 0; }
  // All of them at once, with what they were doing.
  void restart_all();

  // --- the network between processes and agents
  // No way between the two, for so many turns of others: calls fail at once, or are never answered (Kind::timed_out).
  void cut(int process, int place, Kind how, int turns);
  void mend_ways();
  // The running process's next request there takes long, and from then on it has no way for so many turns: it is not answered in time.
  void hold_next(int place, int turns);
  // The agent has heard nothing of the process for too long.
  void expire(int process, int place);
  void died(int process);
  // The child has copies of the parent's connections. It closes them, as the registry has it do.
  void forked(int parent, int child);
  void close_in_child(int parent);
  // A session of its own at the place, for a parent that is about to fork: what comes of it there and in the child.
  Result<std::shared_ptr<target::Target>> attach_for_children(std::shared_ptr<target::Target> storage, int place);
  // Empty, or what an agent did that it must not.
  const std::string& wrong() const { return wrong_; }
  struct Seen {
    uint64_t slow = 0, astray = 0, reset_while_carried_out = 0, waited_for_calls = 0, late_refused = 0, late_taken = 0, instead = 0,
             calls_without_a_way = 0, expired = 0, awaited_by_the_next = 0;
  };
  Seen seen() const;
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
    int broken_in_a_row = 0;
  };
  struct Client {  // a process at a place
    std::optional<Kind> cut;
    int holds_next = 0;         // turns
    target::LostSessions lost;  // in whose place the next one comes
    std::vector<std::weak_ptr<target::SessionChannel>> opened;
  };
  void start(Node& node, int place, const std::string& label);
  agent::Surroundings around(int place);
  Result<std::shared_ptr<target::Target>> attach(std::shared_ptr<target::Target> storage, int place, const std::string& read_first, bool as_an_agent);
  std::shared_ptr<target::SessionChannel> channel_to(Node& node, int place, bool as_an_agent);
  std::shared_ptr<target::SessionChannel> network_channel(const target::SessionId& id, Node& node, int place);
  Result<std::shared_ptr<target::AgentChannel>> connect(int place);
  Status way(int process, int place);
  void mend_way(int process, int place);
  Result<std::unique_ptr<agent::Peer>> open_peer(const std::string& address);
  bool is_held(const Node& node);
  agent::Mishap happens_to_a_request(Node& node);
  agent::Mishap drawn_for_a_request(Node& node);
  agent::Mishap happens_in_the_network(Node& node);
  std::map<int, Node> nodes_;
  std::optional<std::mt19937_64> weather_;
  uint64_t resets_ = 0, starts_ = 0, sessions_ = 0, sums_ = 0;
  std::function<void(std::function<void()>)> in_background_;
  std::vector<std::shared_ptr<agent::FakeAgent>> all_;  // also those that were killed
  std::map<std::pair<int, int>, Client> clients_;       // by process and place
  std::string wrong_;
  Seen seen_;
};

}  // namespace holdfast::sim
