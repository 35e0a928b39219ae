// What the hub has answered to calls in which threads wait. Calls about pointers and calls about locks are counted apart: both may have one number
// for one file.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>

#include "redundant/frame.hpp"

namespace holdfast::redundant {

class HubAnswers {
 public:
  using Call = std::tuple<Word, uint64_t, uint64_t>;  // the word it was asked by and is answered by, the file, its number

  void expect(const Call& call) { answers_.emplace(call, std::nullopt); }
  void take(const Frame& frame) {
    const auto waits = answers_.find({frame.word, frame.subject, frame.number});
    if (waits == answers_.end()) return;
    int64_t told = -1;
    if (frame.payload.size() == sizeof told) std::memcpy(&told, frame.payload.data(), sizeof told);
    waits->second = told;
  }
  // Once; nothing as long as there is none.
  std::optional<int64_t> fetch(const Call& call) {
    const auto waits = answers_.find(call);
    if (waits == answers_.end() || !waits->second) return std::nullopt;
    const int64_t told = *waits->second;
    answers_.erase(waits);
    return told;
  }

 private:
  std::map<Call, std::optional<int64_t>> answers_;
};

}  // namespace holdfast::redundant
