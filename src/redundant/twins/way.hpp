// One connection of a replica, to a twin or to the hub: what waits to be sent, and what came in part.
#pragma once
#include <deque>
#include <mutex>

#include "base/own_numbers.hpp"
#include "redundant/frame.hpp"

namespace holdfast::redundant {

struct Way {
  static constexpr uint64_t most_payload = uint64_t(1) << 32;
  raw::Fd socket;
  std::deque<Bytes> waiting;  // under the replica's lock
  std::mutex sending;         // one at a time, in their order
  Bytes part;                 // under that: what could be sent in part only
  size_t part_sent = 0;
  FrameReader reader{most_payload};

  // False: something is left to be sent, by whoever sends at this moment or by another call. `lock`: the replica's, not held.
  bool flush(std::mutex& lock, bool waits);
};

// What a socket that was accepted says first: one small send, so it is waited for, a second more than `patience_ms`. `early` has come already.
std::optional<Frame> first_frame(int socket, ByteView early, uint64_t patience_ms);

}  // namespace holdfast::redundant
