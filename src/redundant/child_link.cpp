#include "redundant/child_link.hpp"

#include <cstring>
#include <span>

namespace holdfast::redundant {

namespace {

// A hub that has ended refuses at once. One that is late is waited for: who appends unasked does so beside its twins.
constexpr uint64_t connect_ms = 30000, answer_ms = 120000;

struct Asked {
  uint64_t length = 0, sum = 0;
};

}  // namespace

Result<AppendAnswer> ChildLink::asks(const std::string& path, uint64_t end, uint64_t length, uint64_t sum) {
  const Asked asked{length, sum};
  const auto* const begin = reinterpret_cast<const std::byte*>(&asked);
  Bytes payload(begin, begin + sizeof asked);
  const Bytes names = bytes_of(path + '\0' + program_);
  payload.insert(payload.end(), names.begin(), names.end());
  return say(OfChildAppend::asks, end, payload);
}

Result<AppendAnswer> ChildLink::wrote(uint64_t place, int64_t taken) { return say(OfChildAppend::wrote, place, std::as_bytes(std::span(&taken, 1))); }

Status ChildLink::connect() {
  if (hub_.connected() || !unreached_.ok()) return unreached_;
  unreached_ = hub_.connect(orders_.hub, agreement(orders_.secret), connect_ms);
  if (unreached_.ok()) hub_.wait_up_to(answer_ms);
  return unreached_;
}

Result<AppendAnswer> ChildLink::say(OfChildAppend what, uint64_t subject, ByteView payload) {
  HF_TRY(connect());
  Frame frame;
  frame.word = Word::child_append, frame.team = uint16_t(orders_.team), frame.rank = uint32_t(rank_);
  frame.number = uint64_t(what), frame.subject = subject;
  frame.payload.assign(payload.begin(), payload.end());
  Bytes said = encode(frame);
  AppendAnswer answer;
  Bytes heard(encode(frame_of(answer)).size());
  const iovec to{said.data(), said.size()}, from{heard.data(), heard.size()};
  HF_TRY(hub_.send({&to, 1}));
  HF_TRY(hub_.receive({&from, 1}));
  std::memcpy(static_cast<void*>(&answer), heard.data() + heard.size() - sizeof answer, sizeof answer);
  return answer;
}

bool parse_asked(const Frame& frame, ChildAppend& append) {
  Asked asked;
  if (frame.payload.size() < sizeof asked) return false;
  std::memcpy(static_cast<void*>(&asked), frame.payload.data(), sizeof asked);
  const std::string_view names = text_of(ByteView(frame.payload).subspan(sizeof asked));
  const size_t middle = names.find('\0');
  if (middle == names.npos || asked.length == 0) return false;
  append.team = frame.team, append.rank = int(frame.rank), append.end = frame.subject;
  append.length = asked.length, append.sum = asked.sum;
  append.path = names.substr(0, middle), append.program = names.substr(middle + 1);
  return true;
}

Frame frame_of(const AppendAnswer& answer) {
  Frame frame;
  frame.word = Word::child_append, frame.number = uint64_t(answer.what);
  const auto* const begin = reinterpret_cast<const std::byte*>(&answer);
  frame.payload.assign(begin, begin + sizeof answer);
  return frame;
}

}  // namespace holdfast::redundant
