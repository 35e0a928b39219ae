// What a journal's object is made of (docs/format.md), and how a member's is read.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "engine/members.hpp"

namespace holdfast::engine {

using Part = std::pair<uint64_t, uint64_t>;  // [begin, end) in a row
using Parts = std::vector<Part>;             // ascending

// An entry: this header, the row's record as in the sums object, `parts` pairs of numbers, then `stored` bytes of the unit.
struct EntryHeader {
  char magic[4];
  int32_t unit;  // -1: the record only, for a member that holds no unit of the row
  uint64_t row;
  uint64_t stored;
  uint64_t record_bytes;
  uint64_t checksum;  // of this header with 0 here, the record and the parts; seeded with the file key
  uint64_t parts;     // 0 in entries of format 1, which have none
  uint64_t time_ns;   // when it was committed; 0 in entries of format 1
  uint64_t reserved;
};
static_assert(sizeof(EntryHeader) == 64);

struct JournalEntry {
  EntryHeader header;
  Bytes record;
  Parts parts;
  uint64_t payload_offset = 0;
  Bytes payload;  // where the journal is so small that all of it was read in one call
};

inline constexpr uint64_t most_parts = 4096;  // of one entry
// A smaller journal is read in one call, for each is a wait where a target is far.
inline constexpr size_t small_journal_bytes = 128 << 10;

std::string journal_object(const catalog::Located& located, int member, const std::string& name);
// Makes `header` whole, and gives it with what follows it up to the unit's bytes.
Bytes encode_entry(EntryHeader header, ByteView record, std::span<const Part> parts, uint64_t key);
// In the member's lane: its journal's sound entries, up to the first that is not.
Result<std::vector<JournalEntry>> scan_journal(MemberHandle& handle, const std::string& object, const layout::Geometry& g, size_t slot_bytes,
                                               uint64_t key);
// This member had nothing to be folded in, or it was folded in before: unless the target itself is not there.
Status no_journal_there(MemberHandle& handle);

}  // namespace holdfast::engine
