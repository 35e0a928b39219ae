#include "agent/start.hpp"

#include <sys/socket.h>

#include <sstream>

#include <fmt/format.h>

#include "service/helper_process.hpp"
#include "target/agent_link.hpp"

namespace holdfast::agent {

namespace {

constexpr uint64_t connect_ms = 3000;

// One request to an agent that stands beside all directories.
Result<std::string> say(const std::string& registry, const target::AgentNote& note, target::AgentOp op) {
  const auto secret = target::read_secret(registry);
  if (!secret.ok()) return secret.status();
  target::LinkChannel channel;
  if (Status status = channel.connect(note.endpoints, target::agent_agreement(*secret, note.id), connect_ms); !status.ok())
    return Status(Kind::lost, fmt::format("the agent of node {} on {} does not answer: {}", note.node, note.host, status.sentence()));
  target::AgentRequest request;
  request.op = uint16_t(op);
  target::AgentAnswer answer;
  std::string sentence, text(4096, '\0');
  const iovec into{text.data(), text.size()};
  HF_TRY(channel.ask(request, "", {}, answer, sentence, {&into, 1}));
  HF_TRY(target::status_of(answer, sentence));
  text.resize(answer.bulk_bytes);
  return text;
}

}  // namespace

Status start(const Orders& orders, const std::string& executable) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Status::from_errno(errno, "socketpair");
  raw::Fd ours(ends[0]);
  raw::Fd theirs(ends[1]);
  HF_TRY(service::start_helper(executable, {}, {theirs.get()}));
  theirs.reset();
  const std::string text = encode(orders);
  if (send(ours.get(), text.data(), text.size(), MSG_NOSIGNAL) != ssize_t(text.size())) return Status(Kind::io, "the agent has not come up");
  shutdown(ours.get(), SHUT_WR);
  std::string said(4096, '\0');
  const ssize_t got = recv(ours.get(), said.data(), said.size(), MSG_WAITALL);
  said.resize(got > 0 ? size_t(got) : 0);
  if (said == "ok\n") return {};
  if (!said.empty() && said.back() == '\n') said.pop_back();
  return Status(Kind::io, said.empty() ? "the agent has not come up" : said);
}

Result<About> ask(const std::string& registry, const target::AgentNote& note) {
  auto text = say(registry, note, target::AgentOp::about);
  if (!text.ok()) return text.status();
  About about;
  std::istringstream lines(*text);
  for (std::string key; lines >> key;) lines >> (key == "clients" ? about.clients : about.requests);
  return about;
}

Status end(const std::string& registry, const target::AgentNote& note) { return say(registry, note, target::AgentOp::end).status(); }

}  // namespace holdfast::agent
