// Targets as node agents serve them: the client's and the agent's side of the real protocol, and what happens to connections between them.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "target/target.hpp"

namespace holdfast::sim {

class SimulatedChannel;

class Agents {
 public:
  // A connection of the running process to the place's agent, which has that storage.
  Result<std::shared_ptr<target::Target>> attach(std::shared_ptr<target::Target> storage, int place);
  // The agent is killed and started again: connections break, and the locks that hung on them end though their owners live.
  void restart(int place);
  // The n-th request from now on is carried out, and its answer is lost with the connection.
  void lose_an_answer(int place, int64_t n) { losing_[place] = n; }
  void heal(int place) { losing_.erase(place); }

 private:
  friend class SimulatedChannel;
  std::map<int, std::vector<std::weak_ptr<SimulatedChannel>>> channels_;
  std::map<int, int64_t> losing_;
};

}  // namespace holdfast::sim
