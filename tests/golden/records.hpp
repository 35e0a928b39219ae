// The golden record logs: two ranks' entries in a plain file's session, the file as the job left it and as
// the merge makes it.
#pragma once
#include <string>
#include <vector>

#include "golden/files.hpp"
#include "layers/shared_records/record_log.hpp"
#include "layout/shared_record.hpp"

namespace holdfast::golden {

inline constexpr char session_id[] = "00112233445566778899aabbccddeeff";
inline constexpr char session_name[] = "00000003-00112233445566778899aabbccddeeff";
inline constexpr int session_ranks = 2;

// 8 of every 24 bytes, behind a head of 16 bytes.
inline layout::SessionView session_view() { return {16, 4, 24, {{0, 4, 2, 8}}}; }
inline uint64_t place_in_file(uint64_t in_view) { return 16 + in_view / 8 * 24 + (in_view % 8 < 4 ? in_view % 8 : in_view % 8 + 4); }

// What the checked-in logs say about the file that they were left for.
inline constexpr layout::PathState golden_main_state{66305, 4711, 64, 1234567890123};

inline layout::Session session_of(int rank, const layout::PathState& main) {
  layout::Session session;
  session.id = session_id;
  session.path = "/home/user/run 7/caf\xe9.dat";
  session.device = main.device;
  session.inode = main.inode;
  session.ranks = session_ranks;
  session.rank = uint32_t(rank);
  session.node = rank == 0 ? "boot-a 4026531834" : "boot-b 4026531834";
  session.clock_offset_ns = rank == 0 ? 0 : -1234567;
  session.clock_uncertainty_ns = rank == 0 ? 0 : 250;
  session.view = session_view();
  return session;
}

inline layout::SessionNote session_note(const layout::PathState& main) { return {session_id, 1, {}, true, main}; }

struct GoldenEntry {
  layout::Entry entry;
  std::string payload;
};

// Every kind of entry but the session, which comes first in each log. Segment 1 is in the file; of segment 2
// rank 1's first record has been given a place before the others, and the pointer has gone on to 32 since.
inline std::vector<GoldenEntry> entries_of(int rank) {
  using layout::EntryKind;
  auto entry = [&](EntryKind kind, uint64_t id, uint32_t segment, uint64_t time_ns, uint64_t base, const std::string& payload) {
    layout::Entry e;
    e.kind = kind;
    e.session = layout::session_key(session_id);
    e.id = id;
    e.rank = uint32_t(rank);
    e.segment = segment;
    e.collective = segment - 1;
    e.timestamp_ns = time_ns;
    e.uncertainty_ns = rank == 0 ? 0 : 250;
    e.base = base;
    e.length = payload.size();
    return GoldenEntry{e, payload};
  };
  if (rank == 0)
    return {entry(EntryKind::record, 0, 1, 1000, 0, "aaaaaaaa"), entry(EntryKind::placed, 0, 1, 0, 0, ""),
            entry(EntryKind::record, 1, 2, 5000, 16, "bbbb"), entry(EntryKind::record, 2, 2, 9000, 16, "cccccccccccc")};
  return {entry(EntryKind::record, 0, 1, 2000, 0, "dddddddd"),  entry(EntryKind::placed, 0, 1, 0, 0, ""),
          entry(EntryKind::record, 1, 2, 4000, 16, "eeeeeeee"), entry(EntryKind::claimed, 2, 2, 0, 16, ""),
          entry(EntryKind::record, 2, 2, 7000, 16, "ffff"),     entry(EntryKind::pointer, 3, 2, 0, 32, "")};
}
// Behind rank 1's entries; only so much of its payload was written.
inline constexpr char torn_payload[] = "gggggggggggggggg";
inline constexpr uint64_t torn_after = 5;

inline void put_in_view(std::string& file, uint64_t at, const std::string& data) {
  for (char c : data) {
    const uint64_t place = place_in_file(at++);
    if (file.size() <= place) file.resize(place + 1, '\0');
    file[place] = c;
  }
}
inline std::string main_as_left() {
  std::string file = "sixteen bytes..." + std::string(48, '.');
  put_in_view(file, 0, "aaaaaaaadddddddd");
  return file;
}
inline std::string main_as_merged() {
  std::string file = main_as_left();
  put_in_view(file, 16, "eeeeeeee");
  put_in_view(file, 32, "bbbbffffcccccccccccc");
  return file;
}

// Logs whose newest entries have not left the stage; none of them is torn.
inline constexpr layers::Staging golden_staging{4096, 3};

// Leaves the logs beside the plain file `main`, for a file that looks like `state`.
inline Status leave_records(const fs::path& main, const layout::PathState& state, layers::Staging staging = {}) {
  auto shelf = layers::shelf_beside(main.string(), 0644);
  if (!shelf) return shelf.status();
  const uint64_t key = layout::session_key(session_id);
  for (int rank = 0; rank < session_ranks; ++rank) {
    layers::RecordLog log(*shelf, std::string(session_name) + "." + std::to_string(rank), 0, staging);
    std::vector<GoldenEntry> entries = entries_of(rank);
    layout::Entry about = entries[0].entry;
    about.kind = layout::EntryKind::session;
    HF_TRY(log.describe(key, 1, about, layout::encode(session_of(rank, state))));
    for (const GoldenEntry& e : entries) HF_TRY(log.append(e.entry, std::as_bytes(std::span(e.payload))).status());
    if (rank == 0 || staging.bytes == golden_staging.bytes) continue;
    entries[4].entry.id = 3;
    auto torn = log.append(entries[4].entry, std::as_bytes(std::span(std::string_view(torn_payload))));
    if (!torn) return torn.status();
    fs::resize_file(fs::path((*shelf)->where()) / (log.name() + ".0"), torn->position + layout::entry_header_bytes + torn_after);
  }
  return (*shelf)->put(std::string(session_name) + ".note", layout::encode(session_note(state)), false);
}

}  // namespace holdfast::golden
