// What happens to nodes at any moment of an attempt, whoever is doing what: between the driver, the ranks and the protectors.
#include <fmt/format.h>

#include "sim/checkpoints_world.hpp"

namespace holdfast::sim {

// How the running process reaches what a node's agent serves. A program goes on with the disk of its own node whatever happens to the links and the agent.
Status CheckpointsWorld::way_to(int node) {
  const auto process = at_.find(Schedule::current_rank());
  const int from = process == at_.end() ? -1 : process->second;
  const bool stopped = stopped_.contains(node);
  const bool cut = from != node && (cut_off_.contains(node) || cut_off_.contains(from));
  if (!stopped && !cut) return {};
  if (from < 0) count(Did::drops_refused, dropping_);
  else count(entries(from, checkpoint::State::protecting, run_.attempt) > 0 ? Did::protectors_refused : Did::looks_refused);
  return Status(Kind::timed_out, stopped ? "the agent is stopped" : "the link is cut");
}

// Once in a while in an attempt, and over some turns later.
void CheckpointsWorld::begin_weather() {
  if (!one_in(3)) return;
  schedule_.add([this] {
    for (uint64_t turns = random(600); turns > 0; --turns) Schedule::yield(true);
    const auto up = up_nodes();
    if (calm_ || up.empty()) return;
    const int node = up[random(up.size())];
    if (one_in(3)) return lose_power(node);
    leave_alone(node, one_in(2));
    for (uint64_t turns = 20 + random(400); turns > 0; --turns) Schedule::yield(true);
    reach_again(node);
  });
}

// Nobody loses anything by it, and nobody dies of it.
void CheckpointsWorld::leave_alone(int node, bool links) {
  learn_of_renewals();
  ++faults_, ++deaths_;
  lost_now_.insert(node);
  note(fmt::format("{}n{} is {}", links ? "" : "the agent of ", node + 1, links ? "cut off" : "stopped"));
  (links ? cut_off_ : stopped_).insert(node);
  count(links ? Did::links_cut : Did::agents_stopped);
}

void CheckpointsWorld::reach_again(int node) {
  if (cut_off_.erase(node) + stopped_.erase(node) == 0) return;
  learn_of_renewals();
  note(fmt::format("n{} is reached again", node + 1));
}

// Whatever runs there has died, and what was not synced is gone, or there in part. It is up again at once.
void CheckpointsWorld::lose_power(int node) {
  if (!site_.tree.may_lose_power) return;
  learn_of_renewals();
  note(fmt::format("n{} loses power", node + 1));
  count(Did::nodes_without_power);
  ++faults_, ++deaths_, ++boots_[node];
  lost_now_.insert(node);  // to who looks at this moment, and waits for an answer
  singles_.forget_notes_of(node);
  for (const auto& [process, at] : at_)
    if (at == node) schedule_.kill(process);
  for (RankOf& rank : job_) rank.died_with_node |= rank.node == node;
  site_.lose_power_of_disk(node, random_());
  revive_protectors();
}

// As `run` does with protectors that die.
void CheckpointsWorld::revive_protectors() {
  if (!one_in(2)) return;
  std::vector<int> dead;
  for (const ProtectorOf& one : protectors_)
    if (*one.over == Ending::not_yet && schedule_.is_dead(one.process) && is_up(one.node)) dead.push_back(one.node);
  std::erase_if(protectors_,
                [this](const ProtectorOf& one) { return *one.over == Ending::not_yet && schedule_.is_dead(one.process) && is_up(one.node); });
  for (const int node : dead) start_protector(node), count(Did::protectors_revived);
}

}  // namespace holdfast::sim
