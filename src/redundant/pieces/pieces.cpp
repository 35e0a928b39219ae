#include "redundant/pieces/pieces.hpp"

#include <cstring>
#include <span>
#include <utility>

namespace holdfast::redundant {

Frame Pieces::frame(uint64_t subject, uint64_t number, uint64_t index, ByteView head, ByteView bytes) {
  Frame made;
  made.word = Word::piece, made.subject = subject, made.number = number;
  made.payload.reserve(head.size() + bytes.size() + sizeof index);
  for (const ByteView part : {head, bytes, std::as_bytes(std::span(&index, 1))}) made.payload.insert(made.payload.end(), part.begin(), part.end());
  return made;
}

// The index comes last, so that what is before it need not be moved.
void Pieces::take(Frame&& frame, uint64_t ended) {
  uint64_t index = 0;
  if (frame.number <= ended || frame.payload.size() < sizeof index) return;
  const size_t bytes = frame.payload.size() - sizeof index;
  std::memcpy(&index, frame.payload.data() + bytes, sizeof index);
  frame.payload.resize(bytes);
  if (subjects_[frame.subject][frame.number].emplace(index, std::move(frame.payload)).second) bytes_ += bytes;
}

std::optional<Bytes> Pieces::find(uint64_t subject, uint64_t number, uint64_t index) {
  const auto calls = subjects_.find(subject);
  if (calls == subjects_.end()) return std::nullopt;
  const auto call = calls->second.find(number);
  if (call == calls->second.end()) return std::nullopt;
  const auto piece = call->second.find(index);
  if (piece == call->second.end()) return std::nullopt;
  Bytes found = std::move(piece->second);
  call->second.erase(piece);
  bytes_ -= found.size();
  return found;
}

void Pieces::end(uint64_t subject, uint64_t number) {
  const auto calls = subjects_.find(subject);
  if (calls == subjects_.end()) return;
  while (!calls->second.empty() && calls->second.begin()->first <= number) {
    for (const auto& [index, bytes] : calls->second.begin()->second) bytes_ -= bytes.size();
    calls->second.erase(calls->second.begin());
  }
  if (calls->second.empty()) subjects_.erase(calls);
}

}  // namespace holdfast::redundant
