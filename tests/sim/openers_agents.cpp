#include "sim/openers_agents.hpp"

#include <algorithm>
#include <cstring>

#include "base/node_path.hpp"
#include "target/agent.hpp"

namespace holdfast::sim {

using agent::FakeAgent;
using agent::Mishap;

Mishap Agents::happens_to_a_request(Node& node) {
  constexpr uint64_t between_resets = 100;
  node.agent->deliver_late();
  node.agent->patient = true;
  if (node.losing > 0 && --node.losing == 0) {
    node.agent->patient = false;
    return Mishap::unanswered;
  }
  if (!weather_ || (*weather_)() % between_resets != 0) return Mishap::none;
  ++resets_;
  constexpr Mishap mishaps[] = {Mishap::torn, Mishap::lost, Mishap::delayed, Mishap::unanswered, Mishap::repeated};
  return mishaps[(*weather_)() % std::size(mishaps)];
}

void Agents::start(Node& node, const std::string& label) {
  auto served = std::make_shared<const agent::Served>(agent::Served{{parse_node_path(label).path, [&node](uint32_t) { return node.storage; }}});
  node.agent = std::make_shared<FakeAgent>(std::move(served), ++starts_);
  node.agent->mishap = [this, &node](const target::AgentRequest&) { return happens_to_a_request(node); };
}

Result<std::shared_ptr<target::Target>> Agents::attach(std::shared_ptr<target::Target> storage, int place, const std::string& read_first) {
  const std::string label = storage->describe();
  Node& node = nodes_[place];
  if (!node.agent) start(node, label);
  node.storage = std::move(storage);
  target::SessionId id{};
  std::memcpy(id.data(), &++sessions_, sizeof sessions_);
  auto channel = std::make_shared<target::SessionChannel>(id, std::vector<target::SessionId>(), FakeAgent::line_to(node.agent));
  HF_TRY(channel->begin());
  return target::attach_to_agent(std::move(channel), parse_node_path(label).path, label, 0600, {}, read_first);
}

uint64_t Agents::most_round_trips() const {
  uint64_t most = 0;
  for (const auto& [place, node] : nodes_) most = std::max(most, node.agent ? node.agent->round_trips : 0);
  return most;
}

void Agents::count_anew() {
  for (auto& [place, node] : nodes_)
    if (node.agent) node.agent->round_trips = 0;
}

void Agents::restart(int place) {
  Node& node = nodes_[place];
  if (!node.agent) return;
  node.agent->refuses = true;
  node.agent->reset_all();
  node.agent->give_up_those_away();
  node.agent = nullptr;
}

}  // namespace holdfast::sim
