// The record logs of shared file pointers: what a process writes to its own log file instead of the main file, until the records
// of all processes are merged. An append-only file of entries. Each is a header and a payload, both checksummed, so that what a killed process wrote
// is found again and a torn entry is told from a whole one. docs/format-records.md.
//
// Entries start at multiples of 8 bytes. An entry belongs to one log, one place in it and one session. Bytes that were
// left by another log, or moved, fail like damaged ones.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "layout/manifest.hpp"

namespace holdfast::layout {

inline constexpr int session_format = 1;
inline constexpr uint64_t max_session_bytes = 64 << 20;
inline constexpr uint64_t max_record_bytes = 1ull << 46;
inline constexpr uint64_t max_stage_bytes = 64 << 20;
inline constexpr size_t entry_header_bytes = 104;

enum class EntryKind : uint16_t {
  session = 1,  // payload: a Session as text. What the entries after it belong to, and the view that they are seen through
  record = 2,   // payload: data as it lies in the file (the view's bytes, whole etypes)
  claimed = 3,  // this process's records of the segment below `id` lie from `base` on, one after another; maybe not written there yet
  pointer = 4,  // in this segment the shared pointer has stood at `base`
  placed = 5,   // all records of this segment, of all processes, are in the main file, but perhaps only in its cache
  stage = 6,    // payload: room in which the log's newest entries are kept, each with the position that it will have; no checksum of its own
};

struct Entry {
  EntryKind kind = EntryKind::record;
  uint64_t session = 0;         // key of the session, see session_key()
  uint64_t id = 0;              // number of the record in this process and session
  uint32_t rank = 0;            // of the process among those that opened the file
  uint32_t segment = 0;         // grows where the shared pointer gets a place that the records do not tell
  uint64_t collective = 0;      // how many collective calls on the file came before: order across them is exact
  uint64_t timestamp_ns = 0;    // on the clock of rank 0
  uint64_t uncertainty_ns = 0;  // of the timestamp
  uint64_t base = 0;            // bytes of the view before the shared pointer when the segment began, or see EntryKind
  uint64_t length = 0;          // of the payload
  uint64_t checksum = 0;        // of the payload: entry_checksum()
  bool operator==(const Entry&) const = default;
};

// Keys: 64 bits of a log's name and of a session's id.
uint64_t log_key(const std::string& log_name);
uint64_t session_key(const std::string& session_id);

uint64_t entry_checksum(uint64_t log_key, ByteView payload);
// Where the entry after one at `position` starts.
inline uint64_t entry_end(uint64_t position, uint64_t length) { return round_up(position + entry_header_bytes + length, 8); }
// Writes exactly entry_header_bytes.
void encode_entry(uint64_t log_key, uint64_t position, const Entry& entry, std::byte* into);
// Kind::not_found where there are zeros, Kind::corrupt for what is no header of that log and place. The payload is not looked at.
Result<Entry> decode_entry(uint64_t log_key, uint64_t position, ByteView header);
// In a stage: what the entry that begins these bytes says of its position. Nothing where no sound header of that log begins.
std::optional<std::pair<uint64_t, Entry>> staged_entry(uint64_t log_key, ByteView bytes);

// `count` pieces of `length` bytes, `stride` bytes from the start of one to the start of the next.
struct ViewRun {
  int64_t disp = 0;
  uint64_t length = 1;
  uint64_t count = 1;
  int64_t stride = 0;
  bool operator==(const ViewRun&) const = default;
};

// The view that the records of a session are seen through, as MPI_File_set_view gave it, laid flat.
struct SessionView {
  uint64_t disp = 0;
  uint64_t etype_bytes = 1;
  uint64_t extent = 1;                                  // of the filetype: how far one copy is from the next
  std::vector<ViewRun> runs = std::vector<ViewRun>(1);  // its bytes, ascending
  bool operator==(const SessionView&) const = default;
};

// One opening of a main file by some processes.
struct Session {
  std::string id;       // 32 hex digits
  std::string path;     // the main file's, absolute
  std::string file_id;  // of a protected file, 32 hex digits; else empty and the two below say which file it was
  uint64_t device = 0, inode = 0;
  uint32_t ranks = 1;
  uint32_t rank = 0;            // whose log this is
  std::string node;             // what its clock and its caches are shared with: see NodeClock
  int64_t clock_offset_ns = 0;  // what this process adds to its clock
  uint64_t clock_uncertainty_ns = 0;
  SessionView view;
  bool operator==(const Session&) const = default;
};

std::string encode(const Session& session);
Result<Session> decode_session(ByteView text);

// A small text beside the logs. Its name tells its kind; see docs/format-records.md.
struct SessionNote {
  std::string session;            // 32 hex digits
  uint32_t settled_segments = 0;  // records of segments below this one are in the main file, durable
  std::vector<std::string> logs;  // where the algorithm `single` keeps this session's records: absolute or on the targets
  bool closed = false;            // the program closed the file and left the merging for later
  PathState main;                 // what the main file looked like then
  bool operator==(const SessionNote&) const = default;
};
std::string encode(const SessionNote& note);
Result<SessionNote> decode_note(ByteView text);

}  // namespace holdfast::layout
