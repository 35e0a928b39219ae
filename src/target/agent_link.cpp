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

Status LinkChannel::ask_alone(AgentRequest& request, const std::string& name, std::span<const iovec> bulk, AgentAnswer& answer, std::string& sentence,
                              std::span<const iovec> into) {
  uint64_t bytes = 0;
  for (const iovec& one : bulk) bytes += one.iov_len;
  request.number = ++number_;
  request.name_bytes = uint32_t(name.size()), request.bulk_bytes = uint32_t(bytes);
  std::vector<iovec> out{{&request, sizeof request}, {const_cast<char*>(name.data()), name.size()}};
  out.insert(out.end(), bulk.begin(), bulk.end());
  HF_TRY(link_.send(out));
  iovec head{&answer, sizeof answer};
  HF_TRY(link_.receive({&head, 1}));
  auto room = first(into, answer.bulk_bytes);
  if (answer.number != request.number || !sensible(answer) || !room) return Status(Kind::io, "the agent's answer makes no sense", EPROTO);
  sentence.resize(answer.sentence_bytes);
  room->insert(room->begin(), iovec{sentence.data(), sentence.size()});
  return link_.receive(*room);
}

}  // namespace holdfast::target
