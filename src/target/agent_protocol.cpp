#include "target/agent_protocol.hpp"

#include <algorithm>
#include <cstring>

namespace holdfast::target {

namespace {
constexpr size_t most_nodes = 2000;

struct StripesHead {
  uint64_t unit_bytes;
  int32_t count;
  uint32_t hashed;
};

struct TermHead {
  uint64_t offset, bytes;
  uint16_t coefficient, address_bytes;
  uint32_t object_bytes;
};
static_assert(sizeof(TermHead) == 24);

// The next so many bytes as text.
std::optional<std::string> take_text(ByteView& bytes, size_t count) {
  if (count > bytes.size() || count > most_name_bytes) return std::nullopt;
  std::string text(reinterpret_cast<const char*>(bytes.data()), count);
  bytes = bytes.subspan(count);
  return text;
}

template <class Head>
bool take_head(ByteView& bytes, Head& head) {
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes = bytes.subspan(sizeof head);
  return true;
}

void add_parts(Bytes& bytes, std::initializer_list<ByteView> parts) {
  for (const ByteView part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
}

template <class Head>
ByteView bytes_of_head(const Head& head) {
  return std::as_bytes(std::span(&head, 1));
}
}  // namespace

bool sensible(const AgentRequest& request) {
  return request.op >= uint16_t(AgentOp::attach) && request.op <= uint16_t(AgentOp::each) && request.name_bytes <= most_name_bytes &&
         request.bulk_bytes <= most_bulk_bytes && request.quiet <= 1;
}

bool may_be_of_several(const AgentRequest& request) {
  switch (AgentOp(request.op)) {
    case AgentOp::attach:
    case AgentOp::open:
    case AgentOp::write:
    case AgentOp::make_directory:
    case AgentOp::remove:
    case AgentOp::settle:
    case AgentOp::lock: return true;
    case AgentOp::put: return request.handle == 0;
    case AgentOp::get: return request.handle == 0 && request.length <= most_got_bytes;
    default: return false;
  }
}

bool sensible(const AgentAnswer& answer) {
  return answer.sentence_bytes <= most_name_bytes && answer.bulk_bytes <= most_bulk_bytes && answer.kind <= uint16_t(Kind::internal);
}

Status status_of(const AgentAnswer& answer, std::string sentence) {
  if (answer.kind == uint16_t(Kind::ok)) return Status();
  return Status(Kind(answer.kind), std::move(sentence), answer.sys_errno);
}

Bytes encode_stripes(const Stripes& stripes) {
  const StripesHead head{stripes.unit_bytes, stripes.count, stripes.hashed};
  Bytes bytes(sizeof head + stripes.nodes.size() * sizeof(uint32_t));
  std::memcpy(bytes.data(), &head, sizeof head);
  if (!stripes.nodes.empty()) std::memcpy(bytes.data() + sizeof head, stripes.nodes.data(), bytes.size() - sizeof head);
  return bytes;
}

std::optional<Stripes> decode_stripes(ByteView bytes) {
  StripesHead head;
  if (bytes.size() < sizeof head || (bytes.size() - sizeof head) % sizeof(uint32_t) != 0) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  Stripes stripes;
  stripes.unit_bytes = head.unit_bytes, stripes.count = head.count, stripes.hashed = head.hashed != 0;
  stripes.nodes.resize((bytes.size() - sizeof head) / sizeof(uint32_t));
  if (stripes.nodes.size() > most_nodes || stripes.count < 0) return std::nullopt;
  if (!stripes.nodes.empty()) std::memcpy(stripes.nodes.data(), bytes.data() + sizeof head, bytes.size() - sizeof head);
  return stripes;
}

Bytes encode_terms(std::span<const SumTerm> terms) {
  Bytes bytes;
  for (const SumTerm& term : terms) {
    const TermHead head{term.offset, term.bytes, term.coefficient, uint16_t(term.address.size()), uint32_t(term.object.size())};
    add_parts(bytes, {bytes_of_head(head), std::as_bytes(std::span(term.address)), std::as_bytes(std::span(term.object))});
  }
  return bytes;
}

std::optional<std::vector<SumTerm>> decode_terms(ByteView bytes) {
  std::vector<SumTerm> terms;
  while (!bytes.empty()) {
    TermHead head;
    if (terms.size() == most_terms || !take_head(bytes, head)) return std::nullopt;
    auto address = take_text(bytes, head.address_bytes);
    auto object = address ? take_text(bytes, head.object_bytes) : std::nullopt;
    if (!object || head.coefficient > UINT8_MAX || head.bytes > most_bulk_bytes) return std::nullopt;
    terms.push_back({std::move(*address), std::move(*object), head.offset, head.bytes, uint8_t(head.coefficient)});
  }
  if (terms.empty()) return std::nullopt;
  return terms;
}

bool add_small(Bytes& page, const std::string& name, const Result<Bytes>& content) {
  const size_t room = most_page_bytes - sizeof(SmallHead) - name.size();
  const bool is_large = content.ok() ? content->size() > room : content.status().kind() == Kind::corrupt;
  SmallHead head{uint32_t(name.size()), content.ok() && !is_large ? uint32_t(content->size()) : 0, 0, 0, is_large};
  if (!content.ok() && !is_large) head.kind = uint16_t(content.status().kind()), head.sys_errno = content.status().sys_errno();
  if (page.size() + sizeof head + name.size() + head.content_bytes > most_page_bytes) return false;
  add_parts(page, {bytes_of_head(head), std::as_bytes(std::span(name)), head.content_bytes ? ByteView(*content) : ByteView()});
  return true;
}

std::optional<std::vector<SmallObject>> decode_small(ByteView page) {
  std::vector<SmallObject> all;
  while (!page.empty()) {
    SmallHead head;
    if (!take_head(page, head)) return std::nullopt;
    auto name = take_text(page, head.name_bytes);
    if (!name || head.content_bytes > page.size() || head.kind > uint16_t(Kind::internal) || head.is_large > 1) return std::nullopt;
    const ByteView content = page.first(head.content_bytes);
    page = page.subspan(head.content_bytes);
    if (head.kind == uint16_t(Kind::ok)) all.push_back({std::move(*name), Bytes(content.begin(), content.end()), head.is_large == 1});
    else all.push_back({std::move(*name), Status(Kind(head.kind), "it cannot be read on its node", head.sys_errno), false});
  }
  return all;
}

Bytes encode_names(std::span<const std::string> names) {
  Bytes bytes;
  for (const std::string& name : names) {
    const auto* from = reinterpret_cast<const std::byte*>(name.c_str());
    bytes.insert(bytes.end(), from, from + name.size() + 1);
  }
  return bytes;
}

std::optional<std::vector<std::string>> decode_names(ByteView bytes) {
  std::vector<std::string> names;
  for (auto at = bytes.begin(); at != bytes.end();) {
    const auto end = std::find(at, bytes.end(), std::byte{0});
    if (end == bytes.end()) return std::nullopt;
    names.emplace_back(reinterpret_cast<const char*>(&*at), size_t(end - at));
    at = end + 1;
  }
  return names;
}

}  // namespace holdfast::target
