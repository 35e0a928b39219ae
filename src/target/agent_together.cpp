#include "target/agent_together.hpp"

#include <cstring>

#include "base/vectors.hpp"

namespace holdfast::target {

void AgentTogether::add(AgentRequest request, std::string name, std::span<const iovec> bulk) {
  const uint64_t bytes = total_bytes(bulk);
  bytes_ += sizeof request + name.size() + bytes;
  work_.add(AgentOp(request.op), request.flags, bytes);
  request.name_bytes = uint32_t(name.size()), request.bulk_bytes = uint32_t(bytes);
  parts_.push_back({request, std::move(name), {bulk.begin(), bulk.end()}});
}

std::vector<iovec> AgentTogether::bytes() const {
  std::vector<iovec> all;
  for (const One& one : parts_) {
    all.push_back({const_cast<AgentRequest*>(&one.request), sizeof one.request});
    if (!one.name.empty()) all.push_back({const_cast<char*>(one.name.data()), one.name.size()});
    all.insert(all.end(), one.bulk.begin(), one.bulk.end());
  }
  return all;
}

std::optional<std::vector<AgentTogether::Reply>> AgentTogether::answers(ByteView bytes) const {
  std::vector<Reply> replies;
  while (!bytes.empty()) {
    Reply reply;
    if (bytes.size() < sizeof reply.answer || (!replies.empty() && !replies.back().status().ok())) return std::nullopt;
    std::memcpy(&reply.answer, bytes.data(), sizeof reply.answer);
    bytes = bytes.subspan(sizeof reply.answer);
    if (!sensible(reply.answer) || bytes.size() < reply.answer.sentence_bytes + size_t(reply.answer.bulk_bytes)) return std::nullopt;
    reply.sentence.assign(reinterpret_cast<const char*>(bytes.data()), reply.answer.sentence_bytes);
    const ByteView content = bytes.subspan(reply.answer.sentence_bytes, reply.answer.bulk_bytes);
    reply.bytes.assign(content.begin(), content.end());
    bytes = bytes.subspan(reply.answer.sentence_bytes + size_t(reply.answer.bulk_bytes));
    replies.push_back(std::move(reply));
  }
  const bool all = replies.size() == parts_.size() || (!replies.empty() && replies.size() < parts_.size() && !replies.back().status().ok());
  if (!all) return std::nullopt;
  return replies;
}

}  // namespace holdfast::target
