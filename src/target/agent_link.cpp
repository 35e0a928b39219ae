#include "target/agent_link.hpp"

#include <unistd.h>

#include <algorithm>

namespace holdfast::target {

namespace {

constexpr uint64_t answer_ms = 10 * 60 * 1000;

// The first `bytes` of the vectors; nothing where they have no room for so many.
std::optional<std::vector<iovec>> first(std::span<const iovec> vectors, uint64_t bytes) {
  std::vector<iovec> some;
  for (const iovec& one : vectors) {
    if (bytes == 0) break;
    some.push_back({one.iov_base, size_t(std::min<uint64_t>(one.iov_len, bytes))});
    bytes -= some.back().iov_len;
  }
  if (bytes != 0) return std::nullopt;
  return some;
}

Status senseless() { return Status(Kind::io, "the agent's answer makes no sense", EPROTO); }

}  // namespace

Status LinkChannel::connect(const std::string& endpoints, const transport::Agreement& agreement, uint64_t connect_ms) {
  std::lock_guard lock(mutex_);
  owner_ = getpid();
  HF_TRY(link_.connect(endpoints, agreement, connect_ms));
  link_.wait_up_to(answer_ms);
  return {};
}

bool LinkChannel::broken() const {
  std::lock_guard lock(mutex_);
  return !link_.connected();
}

// A forked child has a copy of the descriptor: two processes' questions on one connection would get each other's answers. The parent may have held
// the mutex when it forked.
bool LinkChannel::inherited() const { return owner_ != getpid(); }

Status LinkChannel::ask(AgentRequest request, const std::string& name, std::span<const iovec> bulk, AgentAnswer& answer, std::string& sentence,
                        std::span<const iovec> into) {
  if (inherited()) return Status(Kind::io, "the connection is the parent process's", EIO);
  Status status;
  std::function<void()> tell;
  {
    std::lock_guard lock(mutex_);
    status = ask_alone(request, name, bulk, answer, sentence, into);
    if (status.ok()) return status;
    link_.close();
    tell.swap(tell_);
  }
  if (tell) tell();
  return status;
}

// Their answers wait in the socket for the next question: so few that they never fill it, or the agent would take us for stalled.
void LinkChannel::post(AgentRequest request, const std::string& name) {
  constexpr uint32_t most_posted = 64;
  std::lock_guard lock(mutex_);
  if (inherited() || !link_.connected()) return;
  Status status = number_ - answered_ < most_posted ? Status() : pass_over_answers(number_);
  if (status.ok()) status = send(request, name, {});
  if (!status.ok()) link_.close();
}

Status LinkChannel::send(AgentRequest& request, const std::string& name, std::span<const iovec> bulk) {
  uint64_t bytes = 0;
  for (const iovec& one : bulk) bytes += one.iov_len;
  request.number = ++number_;
  request.name_bytes = uint32_t(name.size()), request.bulk_bytes = uint32_t(bytes);
  std::vector<iovec> out{{&request, sizeof request}, {const_cast<char*>(name.data()), name.size()}};
  out.insert(out.end(), bulk.begin(), bulk.end());
  return link_.send(out);
}

Status LinkChannel::pass_over_answers(uint32_t last) {
  while (answered_ != last) {
    AgentAnswer answer;
    iovec head{&answer, sizeof answer};
    HF_TRY(link_.receive({&head, 1}));
    if (answer.number != answered_ + 1 || !sensible(answer) || answer.bulk_bytes != 0) return senseless();
    std::string sentence(answer.sentence_bytes, 0);
    iovec rest{sentence.data(), sentence.size()};
    HF_TRY(link_.receive({&rest, 1}));
    ++answered_;
  }
  return {};
}

Status LinkChannel::ask_alone(AgentRequest& request, const std::string& name, std::span<const iovec> bulk, AgentAnswer& answer, std::string& sentence,
                              std::span<const iovec> into) {
  HF_TRY(send(request, name, bulk));
  HF_TRY(pass_over_answers(request.number - 1));
  iovec head{&answer, sizeof answer};
  HF_TRY(link_.receive({&head, 1}));
  auto room = first(into, answer.bulk_bytes);
  if (answer.number != request.number || !sensible(answer) || !room) return senseless();
  sentence.resize(answer.sentence_bytes);
  room->insert(room->begin(), iovec{sentence.data(), sentence.size()});
  HF_TRY(link_.receive(*room));
  answered_ = request.number;
  return {};
}

}  // namespace holdfast::target
