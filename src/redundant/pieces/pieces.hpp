// Bytes that replicas of a rank read for each other: pieces of one call, by the call's number on its subject. What comes before its receiver has got to
// that call waits here; what comes after the call is over is dropped. A replica is at most one call ahead, so that is one call's bytes.
//
// Pure, as meetings.hpp is.
#pragma once
#include <map>
#include <optional>

#include "redundant/frame.hpp"

namespace holdfast::redundant {

class Pieces {
 public:
  // The piece is `head` and `bytes`.
  static Frame frame(uint64_t subject, uint64_t number, uint64_t index, ByteView head, ByteView bytes);
  // `ended`: the calls on the subject up to this one are over.
  void take(Frame&& frame, uint64_t ended);
  std::optional<Bytes> find(uint64_t subject, uint64_t number, uint64_t index);
  void end(uint64_t subject, uint64_t number);
  size_t waiting_bytes() const { return bytes_; }

 private:
  using Call = std::map<uint64_t, Bytes>;
  std::map<uint64_t, std::map<uint64_t, Call>> subjects_;
  size_t bytes_ = 0;
};

}  // namespace holdfast::redundant
