#include "checkpoint/elsewhere.hpp"

#include <chrono>
#include <memory>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/environment.hpp"
#include "catalog/pool.hpp"
#include "checkpoint/local.hpp"

namespace holdfast::checkpoint {

namespace {

constexpr std::chrono::milliseconds between_looks(50);

bool has_it(target::Target& target, const std::string& below, State state, const std::string& file) {
  const auto names = target.list(fmt::format("{}/{}", below, state_name(state)));
  if (!names) return false;
  for (const std::string& text : *names)
    if (const auto name = decode_local_name(text); name && name->file == file && name->kind == LocalName::of_user) return true;
  return false;
}

// In the order in which a file goes from one to the next.
Elsewhere look_on(target::Target& target, const std::string& node, const std::string& below, const std::string& file) {
  Elsewhere found;
  for (const State state : {State::writing, State::together})
    if (has_it(target, below, state, file)) found.writing = node;
  for (const State state : {State::closed, State::protecting})
    if (has_it(target, below, state, file)) found.coming = node;
  return found;
}

}  // namespace

Elsewhere look_elsewhere(const std::string& file, const std::string& own, const Run& run, const Settings& settings) {
  Elsewhere found;
  const auto pool = run.nodes.size() > 1 ? catalog::look_at_pool(run.nodes, settings.deadline_ms) : Status(Kind::not_found, "");
  if (!pool) return found;
  const std::string below = directory_of_attempt(run.id, run.attempt);
  std::vector<std::pair<std::shared_ptr<Elsewhere>, std::shared_ptr<target::Ticket>>> asked;
  for (const catalog::Member& member : pool->members) {
    if (!member.usable() || member.path == own) continue;
    auto here = std::make_shared<Elsewhere>();
    asked.emplace_back(here, member.lane->submit([=, target = member.target, node = node_of(member.path)] {
      *here = look_on(*target, node, below, file);
      return Status();
    }));
  }
  for (auto& [here, ticket] : asked) {
    if (!ticket->wait()) continue;
    if (!here->writing.empty()) found.writing = here->writing;
    if (!here->coming.empty()) found.coming = here->coming;
  }
  return found;
}

Status refuse_beside(const std::string& node, const std::string& file) {
  return Status(Kind::busy,
                fmt::format("{} is open to write on node {}, and what two nodes write at once cannot be joined: where ranks are to write one file "
                            "put 'shared:' before its pattern, else give each one of its own with a {{rank}} in its name",
                            file, node),
                EBUSY);
}

Status wait_for_others(const std::string& file, const std::string& own, const Run& run, const Settings& settings) {
  const auto until = catalog::environment().now() + std::chrono::milliseconds(settings.lock_patience_ms);
  for (;;) {
    const Elsewhere now = look_elsewhere(file, own, run, settings);
    if (!now.writing.empty()) return refuse_beside(now.writing, file);
    if (now.coming.empty()) return {};
    if (catalog::environment().now() >= until)
      return Status(Kind::busy,
                    fmt::format("{} was closed on node {} and is not protected yet: see what keeps it with 'holdfast checkpoints'", file, now.coming),
                    EBUSY);
    catalog::environment().wait(between_looks);
  }
}

}  // namespace holdfast::checkpoint
