#include "agent/start.hpp"

#include <unistd.h>

#include <sstream>

#include <fmt/format.h>

#include "service/helper_process.hpp"
#include "target/agent_link.hpp"

namespace holdfast::agent {

namespace {

constexpr uint64_t reach_ms = 3000;

// One request to an agent that stands beside all directories.
Result<std::string> say(const std::string& registry, const target::AgentNote& note, target::AgentOp op) {
  const auto secret = target::read_secret(registry);
  if (!secret.ok()) return secret.status();
  const auto channel = target::begin_session(target::line_to(note.endpoints, target::agent_agreement(*secret, note.id), reach_ms));
  if (!channel.ok())
    return Status(Kind::lost, fmt::format("the agent of node {} on {} does not answer: {}", note.node, note.host, channel.status().sentence()));
  target::AgentRequest request;
  request.op = uint16_t(op);
  target::AgentAnswer answer;
  std::string sentence, text(4096, '\0');
  const iovec into{text.data(), text.size()};
  HF_TRY((*channel)->ask(request, "", {}, answer, sentence, {&into, 1}));
  HF_TRY(target::status_of(answer, sentence));
  text.resize(answer.bulk_bytes);
  return text;
}

}  // namespace

Result<raw::Fd> start(const Orders& orders, const std::string& executable) {
  auto begun = service::start_with_orders(executable, encode(orders));
  if (!begun.ok()) return begun.status();
  if (begun->said == target::agent_serves) return std::move(begun->control);
  if (begun->said == runs_already(orders)) return Status(Kind::exists, begun->said);
  return Status(begun->said == hangs(orders) ? Kind::busy : Kind::io, begun->said.empty() ? "the agent has not come up" : begun->said);
}

Result<About> ask(const std::string& registry, const target::AgentNote& note) {
  auto text = say(registry, note, target::AgentOp::about);
  if (!text.ok()) return text.status();
  About about;
  std::istringstream lines(*text);
  uint64_t number = 0;
  for (std::string key; lines >> key >> number;) {
    if (key == "clients") about.clients = number;
    else if (key == "requests") about.requests = number;
    else if (key == "refused") about.refused = number;
    else if (key == "linger") about.linger_s = number;
  }
  return about;
}

// It has answered before it removes its note.
Status end(const std::string& registry, const target::AgentNote& note) {
  constexpr int tries = 500, between_us = 10000;
  Status said = say(registry, note, target::AgentOp::end).status();
  for (int i = 0; said.ok() && i < tries; ++i) {
    const auto now = target::read_note(registry, note.keys.front());
    if (!now.ok() || now->id != note.id) break;
    usleep(between_us);
  }
  return said;
}

}  // namespace holdfast::agent
