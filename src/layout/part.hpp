// What replicas have written of a plain file and not joined with it yet: a part for each team, and a note that names them; docs/format-parts.md.
#pragma once
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "layout/manifest.hpp"

namespace holdfast::layout {

inline constexpr uint64_t part_page = 4096;
inline constexpr uint64_t most_part_extents = 1 << 16;
inline constexpr uint64_t most_note_bytes = 3 * part_page;

// A chunk of one call that writes. Its head takes whole pages, the bytes after it begin and end with pages.
struct PartRecord {
  uint64_t id = 0;                // of the note
  uint64_t number = 0;            // of the call, from 1: the same in all parts
  uint64_t call_bytes = 0;        // of all chunks of the call
  uint64_t begin = 0, bytes = 0;  // which of these this chunk has
  uint64_t checksum = 0;          // of them
  std::vector<Extent> extents = {};
  bool operator==(const PartRecord&) const = default;
};
inline constexpr uint64_t part_fixed_bytes = 72;
inline uint64_t part_head_bytes(uint64_t extents) { return round_up(part_fixed_bytes + extents * sizeof(Extent), part_page); }
inline uint64_t part_record_bytes(uint64_t extents, uint64_t bytes) { return part_head_bytes(extents) + round_up(bytes, part_page); }

Bytes encode(const PartRecord& record);
// How long the head is that begins with this page. Kind::corrupt: it is none.
Result<uint64_t> part_head_of(ByteView page);
Result<PartRecord> decode_part_record(ByteView head);

// Beside the file. Without it parts mean nothing.
struct PartNote {
  uint64_t id = 0;
  uint64_t teams = 0;  // that have parts, as bits
  int rank = 0;
  std::string parts;  // their paths, but for the dot and the team's number at the end
  PathState main;     // the file as the job knows it; unknown where this was not told
  bool operator==(const PartNote&) const = default;
};
Bytes encode(const PartNote& note);
// What may change, at its place.
inline constexpr uint64_t note_main_at = 2 * part_page;
Bytes encode_main(uint64_t id, const PathState& main);
Result<PartNote> decode_part_note(ByteView bytes);

}  // namespace holdfast::layout
