#include "sim/openers_agents.hpp"

#include <algorithm>
#include <cstring>

#include "base/node_path.hpp"
#include "target/agent.hpp"

namespace holdfast::sim {

using agent::FakeAgent;
using agent::Mishap;

// A client gives a member up whose connection breaks four times in one question. By chance that many come together in a few of ten thousand schedules.
Mishap Agents::happens_to_a_request(Node& node) {
  constexpr int most_in_a_row = 2;
  const bool is_ordered = node.losing == 1;
  const Mishap what = drawn_for_a_request(node);
  if (is_ordered || what == Mishap::slow || what == Mishap::repeated) return what;
  node.broken_in_a_row = what == Mishap::none ? 0 : node.broken_in_a_row + 1;
  return node.broken_in_a_row > most_in_a_row ? Mishap::none : what;
}

Mishap Agents::drawn_for_a_request(Node& node) {
  constexpr uint64_t between_resets = 100;
  node.agent->deliver_late();
  node.agent->patient = true;
  if (node.losing > 0 && --node.losing == 0) {
    node.agent->patient = false;
    return Mishap::unanswered;
  }
  if (has_network() && is_held(node)) return Mishap::slow;
  if (has_network())
    if (const Mishap what = happens_in_the_network(node); what != Mishap::none) return what;
  if (!weather_ || (*weather_)() % between_resets != 0) return Mishap::none;
  ++resets_;
  constexpr Mishap mishaps[] = {Mishap::torn, Mishap::lost, Mishap::delayed, Mishap::unanswered, Mishap::repeated};
  return mishaps[(*weather_)() % std::size(mishaps)];
}

namespace {

// What an agent gets of another one, all of it at once. Now and then it is wrong.
class SimulatedPeer final : public agent::Peer {
 public:
  SimulatedPeer(std::shared_ptr<target::Target> target, std::function<bool()> is_wrong)
      : target_(std::move(target)), is_wrong_(std::move(is_wrong)) {}
  Status begin(std::span<const target::SumTerm> terms, uint64_t bytes) override {
    all_.resize(bytes), taken_ = 0;
    HF_TRY(target_->sum(terms, all_));
    if (is_wrong_()) all_[bytes / 2] ^= std::byte(1);
    return {};
  }
  Status receive(ByteSpan piece) override {
    std::copy_n(all_.begin() + std::ptrdiff_t(taken_), piece.size(), piece.begin());
    taken_ += piece.size();
    return {};
  }

 private:
  const std::shared_ptr<target::Target> target_;
  const std::function<bool()> is_wrong_;
  Bytes all_;
  size_t taken_ = 0;
};

}  // namespace

Result<std::unique_ptr<agent::Peer>> Agents::open_peer(const std::string& address) {
  for (auto& [place, node] : nodes_) {
    if (!node.agent || node.label != address) continue;
    auto attached = attach(node.storage, place, "", true);
    if (!attached.ok()) return attached.status();
    return std::unique_ptr<agent::Peer>(std::make_unique<SimulatedPeer>(std::move(*attached), [this] {
      constexpr uint64_t between_wrong_ones = 10;
      ++sums_;
      return weather_ && (*weather_)() % between_wrong_ones == 0;
    }));
  }
  return Status(Kind::not_found, "no agent serves " + address);
}

void Agents::start(Node& node, int place, const std::string& label) {
  auto served = std::make_shared<const agent::Served>(agent::Served{{parse_node_path(label).path, [&node](uint32_t) { return node.storage; }}});
  node.label = label;
  node.agent = std::make_shared<FakeAgent>(
      std::move(served), ++starts_, [this](const std::string& address) { return open_peer(address); },
      has_network() ? around(place) : agent::Surroundings());
  node.agent->mishap = [this, &node](const target::AgentRequest&) { return happens_to_a_request(node); };
  if (has_network()) all_.push_back(node.agent);
}

Result<std::shared_ptr<target::Target>> Agents::attach(std::shared_ptr<target::Target> storage, int place, const std::string& read_first,
                                                       bool as_an_agent) {
  const std::string label = storage->describe();
  Node& node = nodes_[place];
  if (!node.agent) start(node, place, label);
  node.storage = std::move(storage);
  auto channel = channel_to(node, place, as_an_agent);
  HF_TRY(channel->begin());
  return target::attach_to_agent(std::move(channel), parse_node_path(label).path, label, 0600, {}, read_first);
}

std::shared_ptr<target::SessionChannel> Agents::channel_to(Node& node, int place, bool as_an_agent) {
  target::SessionId id{};
  std::memcpy(id.data(), &++sessions_, sizeof sessions_);
  if (has_network() && !as_an_agent) return network_channel(id, node, place);
  const auto whose = as_an_agent && has_network() ? std::optional<int>(FakeAgent::an_agent) : std::nullopt;
  return std::make_shared<target::SessionChannel>(id, std::vector<target::SessionId>(), FakeAgent::line_to(node.agent, whose));
}

uint64_t Agents::most_round_trips() const {
  uint64_t most = 0;
  for (const auto& [place, node] : nodes_) most = std::max(most, node.agent ? node.agent->round_trips : 0);
  return most;
}

uint64_t Agents::all_round_trips() const {
  uint64_t all = 0;
  for (const auto& [place, node] : nodes_) all += node.agent ? node.agent->round_trips : 0;
  return all;
}

void Agents::count_anew() {
  for (auto& [place, node] : nodes_)
    if (node.agent) node.agent->round_trips = 0;
}

void Agents::restart(int place) {
  Node& node = nodes_[place];
  if (!node.agent) return;
  if (has_network()) {
    node.agent->die();
  } else {
    node.agent->refuses = true;
    node.agent->reset_all();
    node.agent->give_up_those_away();
  }
  node.agent = nullptr;
}

}  // namespace holdfast::sim
