// What a replica writes down as it goes, for a team that is started again: calls and what came of them, and what the world answered.
#pragma once
#include <cstdint>

#include "base/bytes.hpp"

namespace holdfast::redundant {

// What a replica is about to do.
struct Claim {
  uint64_t call = 0;  // what kind of call; the caller's numbers
  uint64_t at = 0, bytes = 0;
  uint64_t sum = 0;    // of all that must be the same and is not said above
  uint64_t view = 0;   // of what this replica alone has seen: may differ, and the leader learns whether it does
  uint64_t looks = 0;  // it changes nothing that others see; may differ
  // Where the messages of the calling thread are compared: one more than their number up to here, and their running sum.
  uint64_t sent = 0, sent_sum = 0;
  // Of one that has resumed from a checkpoint, until bytes of it were the same as others': nothing speaks for it yet.
  enum Proof : uint64_t { proven, unproven, unproven_may_begin_anew };
  uint64_t proof = proven;
  // It has bytes of the program's, and their checksum.
  bool has_content() const { return looks == 0 && bytes != 0 && sum != 0; }
  bool same_but_for_messages(const Claim& other) const { return call == other.call && at == other.at && bytes == other.bytes && sum == other.sum; }
  bool same_shape(const Claim& other) const { return call == other.call && at == other.at && bytes == other.bytes; }
  bool same_messages(const Claim& other) const { return sent == 0 || other.sent == 0 || (sent == other.sent && sent_sum == other.sent_sum); }
  bool operator==(const Claim& other) const { return same_but_for_messages(other) && same_messages(other); }
};

struct Entry {
  // bytes: what a call has read, where they may be changed later; opened: the `number`-th open of that name.
  // waiting: decisions that stand before the next entry, a call, and are asked for after it; payload: their subjects, and the first number of each
  enum Kind : uint32_t { call = 1, intent, decision, bytes, opened, waiting } kind = call;
  uint64_t subject = 0, number = 0;
  int64_t time_ms = 0;  // of the node's monotonic clock
  ByteView payload = {};
};

class Keeper {
 public:
  // The `number`-th call on the subject is over.
  virtual void call(uint64_t subject, uint64_t number, const Claim& claim, ByteView outcome) = 0;
  // It is about to be made, and no other replica knows of it.
  virtual void intent(uint64_t subject, uint64_t number, const Claim& claim) = 0;
  // The `number`-th answer about the subject.
  virtual void decision(uint64_t subject, uint64_t number, ByteView answer) = 0;
  // As it stands in the log of the one that is followed.
  virtual void repeat(const Entry& entry) = 0;

 protected:
  ~Keeper() = default;
};

}  // namespace holdfast::redundant
