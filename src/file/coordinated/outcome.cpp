#include "file/coordinated/outcome.hpp"

#include <cstring>
#include <string>

namespace holdfast::file {

namespace {

struct Head {
  uint64_t value, sentence_bytes;
  int32_t kind, sys_errno;
};

}  // namespace

Bytes pack(const Outcome& outcome) {
  const std::string& sentence = outcome.status.sentence();
  const Head head{outcome.value, sentence.size(), int32_t(outcome.status.kind()), outcome.status.sys_errno()};
  Bytes bytes(sizeof head + sentence.size() + outcome.payload.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, sentence.data(), sentence.size());
  if (!outcome.payload.empty()) std::memcpy(bytes.data() + sizeof head + sentence.size(), outcome.payload.data(), outcome.payload.size());
  return bytes;
}

Outcome unpack(ByteView bytes) {
  const auto torn = [] { return Outcome{Status(Kind::internal, "a replica's answer makes no sense"), 0, {}}; };
  Head head;
  if (bytes.size() < sizeof head) return torn();
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes = bytes.subspan(sizeof head);
  if (head.sentence_bytes > bytes.size()) return torn();
  Outcome outcome;
  outcome.value = head.value;
  const std::string sentence(reinterpret_cast<const char*>(bytes.data()), head.sentence_bytes);
  if (head.kind != int32_t(Kind::ok)) outcome.status = Status(Kind(head.kind), sentence, head.sys_errno);
  bytes = bytes.subspan(head.sentence_bytes);
  outcome.payload.assign(bytes.begin(), bytes.end());
  return outcome;
}

}  // namespace holdfast::file
