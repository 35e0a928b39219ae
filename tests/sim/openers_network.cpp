// The network between processes and node agents: what is slow, goes astray or finds no way, and what processes leave behind.
#include <algorithm>
#include <cstring>

#include "base/node_path.hpp"
#include "sim/openers_agents.hpp"
#include "sim/schedule.hpp"
#include "target/agent.hpp"
#include "target/companion.hpp"

namespace holdfast::sim {

using agent::FakeAgent;
using agent::Mishap;

namespace {

// In a world with a network each process has a number of its own, as far as connections are concerned.
bool in_a_network = false;
int process_in_turn() {
  constexpr int first = 1 << 24;
  return in_a_network && Schedule::in_one() ? first + Schedule::current_rank() : target::process_of_memory();
}
const auto processes_in_turns = target::process_id = process_in_turn;

void let_others_on(uint64_t turns) {
  for (; turns > 0; --turns) Schedule::yield(true);
}

}  // namespace

Agents::Agents() { in_a_network = false; }

void Agents::begin_network(std::function<void(std::function<void()>)> in_background) {
  in_background_ = std::move(in_background);
  in_a_network = true;
}

agent::Surroundings Agents::around(int place) {
  agent::Surroundings around;
  around.process = [] { return Schedule::current_rank(); };
  around.lives = [] { return !Schedule::dead(); };
  around.way = [this, place](int process) { return way(process, place); };
  around.wait = [] { Schedule::yield(true); };
  around.connecting = [this] {
    if ((*weather_)() % 2) Schedule::yield(true);
  };
  around.later = [this](std::function<void()> what) {
    constexpr uint64_t most_turns = 40;
    in_background_([turns = 1 + (*weather_)() % most_turns, what = std::move(what)] {
      let_others_on(turns);
      what();
    });
  };
  around.breaks = [this] { return (*weather_)() % 8 == 0; };
  around.wrong = [this](const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  };
  return around;
}

Mishap Agents::happens_in_the_network(Node&) {
  constexpr uint64_t between_slow_ones = 12, between_stray_ones = 100;
  if ((*weather_)() % between_slow_ones == 0) return ++seen_.slow, Mishap::slow;
  if ((*weather_)() % between_stray_ones == 0) return ++seen_.astray, Mishap::astray;
  return Mishap::none;
}

// As the registry does it: what the process has lost there ends before the new session does anything.
std::shared_ptr<target::SessionChannel> Agents::network_channel(const target::SessionId& id, Node& node, int place) {
  const int process = Schedule::current_rank();
  Client& client = clients_[{process, place}];
  seen_.instead += client.lost.all().size();
  auto channel = std::make_shared<target::SessionChannel>(id, client.lost.all(), FakeAgent::line_to(node.agent));
  channel->when_broken([&client, id, agent = node.agent] {
    client.lost.note(id);
    agent->lost_by_client(id);
  });
  client.opened.push_back(channel);
  Schedule::at_death([this, process] { died(process); });
  return channel;
}

Status Agents::way(int process, int place) {
  const auto client = clients_.find({process, place});
  if (client == clients_.end() || !client->second.cut) return {};
  ++seen_.calls_without_a_way;
  return Status(*client->second.cut, "there is no way to the node");
}

void Agents::cut(int process, int place, Kind how, int turns) {
  clients_[{process, place}].cut = how;
  in_background_([this, process, place, turns] {
    for (int left = turns; left > 0 && clients_[{process, place}].cut; --left) Schedule::yield(true);
    mend_way(process, place);
  });
}

void Agents::hold_next(int place, int turns) { clients_[{Schedule::current_rank(), place}].holds_next = turns; }

bool Agents::is_held(const Node& node) {
  const int process = Schedule::current_rank();
  for (const auto& [place, one] : nodes_) {
    if (&one != &node) continue;
    const auto client = clients_.find({process, place});
    const int turns = client == clients_.end() ? 0 : std::exchange(client->second.holds_next, 0);
    if (turns > 0) cut(process, place, Kind::timed_out, turns);
    return turns > 0;
  }
  return false;
}

// What was closed meanwhile the agent hears of now.
void Agents::mend_way(int process, int place) {
  Client& client = clients_[{process, place}];
  if (!client.cut) return;
  client.cut.reset();
  if (const auto& agent = nodes_[place].agent) agent->expire(process, true);
}

void Agents::mend_ways() {
  for (auto& [who, client] : clients_) mend_way(who.first, who.second);
}

void Agents::expire(int process, int place) {
  const Node& node = nodes_[place];
  if (!node.agent || !node.agent->hears(process)) return;
  ++seen_.expired;
  node.agent->expire(process, false);
}

void Agents::died(int process) {
  for (const auto& agent : all_) agent->died(process);
}

void Agents::forked(int parent, int child) {
  for (const auto& agent : all_) agent->forked(parent, child);
}

void Agents::close_in_child(int parent) {
  for (auto& [who, client] : clients_)
    if (who.first == parent)
      for (const auto& one : client.opened)
        if (const auto channel = one.lock()) channel->close_in_child();
  for (const auto& agent : all_) agent->close_what_parents_closed(Schedule::current_rank());
}

// As the registry connects a forked child.
Result<std::shared_ptr<target::AgentChannel>> Agents::connect(int place) {
  Node& node = nodes_[place];
  if (!node.agent) return Status(Kind::io, "no agent is there");
  auto channel = channel_to(node, place, false);
  HF_TRY(channel->begin());
  return std::shared_ptr<target::AgentChannel>(std::move(channel));
}

Result<std::shared_ptr<target::Target>> Agents::attach_for_children(std::shared_ptr<target::Target> storage, int place) {
  const std::string label = storage->describe();
  Node& node = nodes_[place];
  if (!node.agent) start(node, place, label);
  node.storage = std::move(storage);
  auto channel = connect(place);
  if (!channel.ok()) return channel.status();
  return target::attach_to_agent(std::move(*channel), parse_node_path(label).path, label, 0600, [this, place] { return connect(place); });
}

void Agents::restart_all() {
  for (auto& [place, node] : nodes_) restart(place);
}

Agents::Seen Agents::seen() const {
  Seen all = seen_;
  for (const auto& agent : all_) {
    all.waited_for_calls += agent->waited_for_calls;
    all.awaited_by_the_next += agent->awaited_by_the_next;
    all.late_refused += agent->late_refused;
    all.late_taken += agent->late_taken;
    all.reset_while_carried_out += agent->reset_while_busy;
  }
  return all;
}

}  // namespace holdfast::sim
