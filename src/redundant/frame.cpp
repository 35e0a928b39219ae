#include "redundant/frame.hpp"

#include <cstring>

namespace holdfast::redundant {

namespace {

struct FrameHead {
  uint64_t payload_bytes;
  uint16_t word, team;
  uint32_t rank, epoch, unused;
  uint64_t subject, number;
};
static_assert(sizeof(FrameHead) == 40);

std::optional<FrameHead> head_of(ByteView bytes) {
  if (bytes.size() < sizeof(FrameHead)) return std::nullopt;
  FrameHead head;
  std::memcpy(static_cast<void*>(&head), bytes.data(), sizeof head);
  return head;
}

}  // namespace

Bytes encode(const Frame& frame) {
  const FrameHead head{frame.payload.size(), uint16_t(frame.word), frame.team, frame.rank, frame.epoch, 0, frame.subject, frame.number};
  Bytes bytes(sizeof head + frame.payload.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  if (!frame.payload.empty()) std::memcpy(bytes.data() + sizeof head, frame.payload.data(), frame.payload.size());
  return bytes;
}

std::string_view text_of(ByteView payload) { return {reinterpret_cast<const char*>(payload.data()), payload.size()}; }

Bytes bytes_of(std::string_view text) {
  const auto* at = reinterpret_cast<const std::byte*>(text.data());
  return {at, at + text.size()};
}

bool FrameReader::add(ByteView came) {
  held_.erase(held_.begin(), held_.begin() + ptrdiff_t(used_));
  used_ = 0;
  held_.insert(held_.end(), came.begin(), came.end());
  const auto head = head_of(held_);
  return !head || head->payload_bytes <= most_;
}

std::optional<Frame> FrameReader::next() {
  const ByteView rest = ByteView(held_).subspan(used_);
  const auto head = head_of(rest);
  if (!head || head->payload_bytes > most_ || rest.size() - sizeof(FrameHead) < head->payload_bytes) return std::nullopt;
  Frame frame{Word(head->word), head->team, head->rank, head->epoch, head->subject, head->number, {}};
  const ByteView payload = rest.subspan(sizeof(FrameHead), head->payload_bytes);
  frame.payload.assign(payload.begin(), payload.end());
  used_ += sizeof(FrameHead) + payload.size();
  return frame;
}

}  // namespace holdfast::redundant
