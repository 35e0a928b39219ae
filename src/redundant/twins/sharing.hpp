// How replicas share the work on bytes: pieces that they read for each other before they meet. Part of what a Replica is.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "redundant/twins/replica.hpp"

namespace holdfast::redundant {

class Sharing {
 public:
  // Null where the replicas have no way to do so.
  static Sharing* of(Replica& replica) { return dynamic_cast<Sharing*>(&replica); }

  struct Living {
    uint64_t teams = 0;  // as bits
    uint32_t epoch = 0;
  };
  virtual Living living() = 0;
  // A piece of this process's next call on the subject, for the same call of that team's replica: `head` and `bytes` after it. It may be on its way later
  // than the return.
  virtual void give(int team, uint64_t subject, uint64_t index, ByteView head, ByteView bytes) = 0;
  // The piece that another one gives. Nothing where the epoch is another one by now: then who was to give it may never do so.
  virtual std::optional<Bytes> take(uint64_t subject, uint64_t index, uint32_t epoch) = 0;
  // A line for `holdfast status --job`, once.
  virtual void note(const std::string& line) = 0;

 protected:
  virtual ~Sharing() = default;
};

}  // namespace holdfast::redundant
