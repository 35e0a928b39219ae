#include "checkpoint/leftovers.hpp"

#include <functional>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "catalog/pool.hpp"
#include "target/lane.hpp"

namespace holdfast::checkpoint {

namespace {

using OnNode = std::function<Status(target::Target&, const std::string& node)>;

// On all that answer, side by side: those where it failed, and those that do not answer.
std::set<std::string> on_each(const std::vector<std::string>& nodes, uint64_t deadline_ms, const OnNode& call) {
  const auto pool = nodes.empty() ? Result<catalog::TargetSet>(catalog::TargetSet()) : catalog::look_at_pool(nodes, deadline_ms);
  if (!pool) return {nodes.begin(), nodes.end()};
  std::set<std::string> failed;
  std::vector<std::pair<std::string, std::shared_ptr<target::Ticket>>> asked;
  for (const catalog::Member& member : pool->members) {
    if (!member.usable()) failed.insert(member.path);
    else asked.emplace_back(member.path, member.lane->submit([=, target = member.target, node = member.path] { return call(*target, node); }));
  }
  for (const auto& [node, ticket] : asked)
    if (!ticket->wait()) failed.insert(node);
  return failed;
}

// On a full disk the copy has to go first.
Status drop_copy(target::Target& target, const LocalEntry& entry, const std::string& name, bool remembers) {
  const auto in = [&](State state) { return fmt::format("{}/{}/{}", directory_of_attempt(entry.run, entry.attempt), state_name(state), name); };
  const bool put = remembers && target.put(in(State::dropped), {}, false).ok();
  const Status gone = target.remove(in(entry.state));
  if (remembers && !put) HF_TRY(target.put(in(State::dropped), {}, false));
  if (entry.state == State::failed) (void)target.remove(in(entry.state) + why_ending);
  return gone || gone.kind() == Kind::not_found ? Status() : gone;
}

}  // namespace

std::set<std::string> drop_copies(const std::vector<LocalEntry>& entries, const layout::Attempt& attempt_now, const Settings& settings) {
  const auto by_node = std::make_shared<std::map<std::string, std::vector<LocalEntry>>>();
  std::vector<std::string> nodes;
  for (const LocalEntry& entry : entries) (*by_node)[entry.node].push_back(entry);
  for (const auto& [node, some] : *by_node) nodes.push_back(node);
  return on_each(nodes, settings.deadline_ms, [by_node, attempt_now](target::Target& target, const std::string& node) {
    Status worst;
    for (const LocalEntry& entry : by_node->at(node)) {
      const auto name = encode(entry.name);
      const bool was_written = entry.state != State::restored && entry.state != State::hidden && entry.state != State::dropped;
      const Status gone = name ? drop_copy(target, entry, *name, was_written && entry.attempt == attempt_now) : name.status();
      if (!gone) worst = gone;
    }
    return worst;
  });
}

void forget_run(const std::string& run, const std::vector<std::string>& nodes, uint64_t deadline_ms) {
  (void)on_each(nodes, deadline_ms, [at = fmt::format("{}/{}", local_directory, run)](target::Target& target, const std::string&) {
    return target.remove_directory(at);
  });
}

}  // namespace holdfast::checkpoint
