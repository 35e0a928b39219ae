#include "redundant/pieces/pieces.hpp"

#include <cstring>

namespace holdfast::redundant {

Frame Pieces::frame(uint64_t subject, uint64_t number, uint64_t index, ByteView bytes) {
  Frame made;
  made.word = Word::piece, made.subject = subject, made.number = number;
  made.payload.resize(sizeof index + bytes.size());
  std::memcpy(made.payload.data(), &index, sizeof index);
  if (!bytes.empty()) std::memcpy(made.payload.data() + sizeof index, bytes.data(), bytes.size());
  return made;
}

void Pieces::take(const Frame& frame, uint64_t ended) {
  uint64_t index = 0;
  if (frame.number <= ended || frame.payload.size() < sizeof index) return;
  std::memcpy(&index, frame.payload.data(), sizeof index);
  const bool is_new = subjects_[frame.subject][frame.number].emplace(index, Bytes(frame.payload.begin() + sizeof index, frame.payload.end())).second;
  if (is_new) bytes_ += frame.payload.size() - sizeof index;
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
