// The ranks' output, once: whichever team is ahead has its bytes delivered, and the others' same bytes are passed over.
//
// A team that has resumed prints something else first, until it joins. What it prints from there on is put where the same lines have been delivered.
// Where none has been, it goes behind all that was delivered, once nobody else is left to deliver it.
#pragma once
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "base/bytes.hpp"

namespace holdfast::redundant {

// In the output of a process that joins, at that place.
inline constexpr std::string_view joined_mark = "\x1e\x1dholdfast.joined.6f1c2a9e40d7\x1d\x1e";

class Output {
 public:
  // Of `came`, which begins at `position` of the stream: what has not been delivered yet.
  ByteView fresh(uint32_t rank, uint64_t stream, uint64_t position, ByteView came);
  // Of the next bytes of a team that has resumed.
  Bytes fresh_of_resumed(int team, uint32_t rank, uint64_t stream, ByteView came);
  // All other teams are lost: what of its output has been held back. `has_ended`: also of one that had nothing to do any more, and has not joined.
  Bytes let_out(int team, uint32_t rank, uint64_t stream, bool has_ended);

 private:
  struct Delivered {
    uint64_t bytes = 0;
    Bytes tail;  // the last of them
  };
  struct Resumed {
    Bytes held;
    bool has_joined = false, is_placed = false, is_alone = false;
    uint64_t position = 0;  // of what is held, once that is known
  };
  Bytes take_out(Resumed& its, uint32_t rank, uint64_t stream);
  static bool place(Resumed& its, const Delivered& delivered);

  std::map<std::pair<uint32_t, uint64_t>, Delivered> delivered_;
  std::map<std::pair<int, std::pair<uint32_t, uint64_t>>, Resumed> resumed_;
};

}  // namespace holdfast::redundant
