#include "target/agent_together.hpp"

#include <cstring>

#include "base/vectors.hpp"

namespace holdfast::target {

void AgentTogether::add(AgentRequest request, std::string name, std::span<const iovec> bulk) {
  const uint64_t bytes = total_bytes(bulk);
  bytes_ += sizeof request + name.size() + bytes;
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

std::optional<std::vector<AgentTogether::Part>> AgentTogether::answers(ByteView bytes) const {
  std::vector<Part> parts;
  while (!bytes.empty()) {
    Part part;
    if (bytes.size() < sizeof part.answer || (!parts.empty() && !parts.back().status().ok())) return std::nullopt;
    std::memcpy(&part.answer, bytes.data(), sizeof part.answer);
    bytes = bytes.subspan(sizeof part.answer);
    if (!sensible(part.answer) || bytes.size() < part.answer.sentence_bytes + size_t(part.answer.bulk_bytes)) return std::nullopt;
    part.sentence.assign(reinterpret_cast<const char*>(bytes.data()), part.answer.sentence_bytes);
    const ByteView content = bytes.subspan(part.answer.sentence_bytes, part.answer.bulk_bytes);
    part.bytes.assign(content.begin(), content.end());
    bytes = bytes.subspan(part.answer.sentence_bytes + size_t(part.answer.bulk_bytes));
    parts.push_back(std::move(part));
  }
  const bool all = parts.size() == parts_.size() || (!parts.empty() && parts.size() < parts_.size() && !parts.back().status().ok());
  if (!all) return std::nullopt;
  return parts;
}

}  // namespace holdfast::target
