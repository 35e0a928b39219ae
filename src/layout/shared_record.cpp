#include "layout/shared_record.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include <fmt/format.h>

#include "base/text_bytes.hpp"
#include "coding/checksum.hpp"
#include "layout/json_fields.hpp"
#include "layout/sealed_text.hpp"

namespace holdfast::layout {

namespace {

constexpr uint32_t entry_magic = 0x31454648;  // "HFE1" in memory
constexpr size_t max_runs = 1 << 20;
constexpr size_t max_logs = 1 << 20;

struct EntryHeader {
  uint32_t magic = 0;
  uint16_t kind = 0;
  uint16_t zero = 0;
  uint64_t log = 0, session = 0, position = 0, id = 0;
  uint32_t rank = 0, segment = 0;
  uint64_t collective = 0, timestamp_ns = 0, uncertainty_ns = 0, base = 0, length = 0, payload_checksum = 0;
  uint64_t checksum = 0;  // of all before it, seeded with the log's key
};
static_assert(sizeof(EntryHeader) == entry_header_bytes);

uint64_t header_checksum(const EntryHeader& header) {
  const auto bytes = std::as_bytes(std::span(&header, 1));
  return coding::plain_checksum(bytes.first(sizeof(EntryHeader) - sizeof header.checksum), header.log);
}

uint64_t key_of(std::string_view text) { return coding::plain_checksum(bytes_of_text(text)); }

}  // namespace

uint64_t log_key(const std::string& log_name) { return key_of(log_name); }
uint64_t session_key(const std::string& session_id) { return key_of(session_id); }
uint64_t entry_checksum(uint64_t log, ByteView payload) { return coding::plain_checksum(payload, log); }

void encode_entry(uint64_t log, uint64_t position, const Entry& e, std::byte* into) {
  assert(position % 8 == 0 && e.length <= max_record_bytes);
  EntryHeader header{entry_magic,    uint16_t(e.kind), 0,      log,      e.session,  position, e.id, e.rank, e.segment, e.collective,
                     e.timestamp_ns, e.uncertainty_ns, e.base, e.length, e.checksum, 0};
  header.checksum = header_checksum(header);
  std::memcpy(into, &header, sizeof header);
}

Result<Entry> decode_entry(uint64_t log, uint64_t position, ByteView bytes) {
  auto damaged = [&](const char* what) { return Status(Kind::corrupt, fmt::format("the entry at byte {} is torn or damaged: {}", position, what)); };
  if (bytes.size() < sizeof(EntryHeader)) {
    if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; })) return Status(Kind::not_found, "the log ends here");
    return damaged("it is cut off");
  }
  EntryHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic == 0 && std::all_of(bytes.begin(), bytes.begin() + sizeof(EntryHeader), [](std::byte b) { return b == std::byte{0}; }))
    return Status(Kind::not_found, "the log ends here");
  if (header.magic != entry_magic) return damaged("it does not begin like one");
  if (header.checksum != header_checksum(header)) return damaged("its checksum differs");
  if (header.log != log || header.position != position) return damaged("it belongs elsewhere");
  if (header.kind < uint16_t(EntryKind::session) || header.kind > uint16_t(EntryKind::stage) || header.zero != 0)
    return Status(Kind::version, "the log was written by a newer Holdfast: install that to merge it; nothing was changed");
  if (header.length > max_record_bytes || header.base > max_offset) return damaged("a number in it is out of bounds");
  if (header.kind == uint16_t(EntryKind::session) && header.length > max_session_bytes) return damaged("its session is too long");
  if (header.kind == uint16_t(EntryKind::stage) && header.length > max_stage_bytes) return damaged("its stage is too long");
  return Entry{EntryKind(header.kind), header.session,        header.id,   header.rank,   header.segment,         header.collective,
               header.timestamp_ns,    header.uncertainty_ns, header.base, header.length, header.payload_checksum};
}

std::optional<std::pair<uint64_t, Entry>> staged_entry(uint64_t log, ByteView bytes) {
  EntryHeader header;
  if (bytes.size() < sizeof header) return {};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != entry_magic) return {};
  auto entry = decode_entry(log, header.position, bytes);
  if (!entry.ok() || entry->kind == EntryKind::stage || header.position % 8 != 0) return {};
  return std::pair(header.position, *entry);
}

// ---------------------------------------------------------------- sessions

namespace {

Json runs_to_json(const std::vector<ViewRun>& runs) {
  Json list = Json::array();
  for (const ViewRun& run : runs) list.push_back(Json::array({run.disp, run.length, run.count, run.stride}));
  return list;
}

// What a Typemap takes for granted: ascending bytes that none overlap, offsets that cannot overflow within one copy.
bool sound_runs(const SessionView& view) {
  constexpr int64_t limit = int64_t(1) << 62;
  int64_t end = 0;
  for (const ViewRun& run : view.runs) {
    if (run.length == 0 || run.count == 0 || run.disp < end) return false;
    if (run.count > 1 && (run.stride < 0 || uint64_t(run.stride) < run.length)) return false;
    const __int128 last = __int128(run.disp) + __int128(run.count - 1) * run.stride + __int128(run.length);
    if (last > limit) return false;
    end = int64_t(last);
  }
  // Copies may interleave (an extent below the last byte), but each starts after the one before it.
  return view.extent > 0 && view.extent <= uint64_t(limit) && !view.runs.empty();
}

void read_runs(const Json& list, SessionView& view, std::string& complaint) {
  view.runs.clear();
  for (const Json& entry : list) {
    const bool sound = entry.is_array() && entry.size() == 4 && entry[0].is_number_integer() && entry[1].is_number_unsigned() &&
                       entry[2].is_number_unsigned() && entry[3].is_number_integer();
    if (!sound) {
      complaint = "view.runs has an entry that is not four numbers";
      return;
    }
    view.runs.push_back({entry[0].get<int64_t>(), entry[1].get<uint64_t>(), entry[2].get<uint64_t>(), entry[3].get<int64_t>()});
  }
}

void read_view(const Json& json, SessionView& view, std::string& complaint) {
  Fields fields(json, "view.", complaint);
  fields.number("disp", view.disp, 0, max_offset);
  fields.number("etype_bytes", view.etype_bytes, 1, max_offset);
  fields.number("extent", view.extent, 1, max_offset);
  if (const Json* list = fields.list("runs", max_runs)) read_runs(*list, view, complaint);
  if (complaint.empty() && !sound_runs(view)) complaint = "view.runs is not a filetype that can be written";
}

void read_session(const Json& json, Session& s, std::string& complaint) {
  constexpr uint64_t any = std::numeric_limits<uint64_t>::max();
  Fields fields(json, "", complaint);
  fields.text("id", s.id, is_id);
  fields.text("path", s.path, is_absolute_or_empty);
  fields.text("file_id", s.file_id, is_id_or_empty);
  fields.number("device", s.device, 0, any);
  fields.number("inode", s.inode, 0, any);
  fields.small("ranks", s.ranks, 1, std::numeric_limits<int32_t>::max());
  fields.small("rank", s.rank, 0, s.ranks - 1);
  fields.text("node", s.node);
  fields.time("clock_offset_ns", s.clock_offset_ns);
  fields.number("clock_uncertainty_ns", s.clock_uncertainty_ns, 0, any);
  if (const Json* view = fields.find("view")) read_view(*view, s.view, complaint);
}

// One JSON object, sealed as `what`.
Result<Json> open_text(const char* what, ByteView bytes) {
  if (bytes.size() > max_session_bytes) return Status(Kind::corrupt, fmt::format("this {} is larger than any can be", what));
  auto text = unseal(what, session_format, chars_of(bytes));
  if (!text) return text.status();
  Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded()) return Status(Kind::corrupt, fmt::format("this {} is not JSON", what));
  return json;
}

}  // namespace

std::string encode(const Session& s) {
  const Json view{{"disp", s.view.disp}, {"etype_bytes", s.view.etype_bytes}, {"extent", s.view.extent}, {"runs", runs_to_json(s.view.runs)}};
  const Json json{{"id", s.id},
                  {"path", text_to_json(s.path)},
                  {"file_id", s.file_id},
                  {"device", s.device},
                  {"inode", s.inode},
                  {"ranks", s.ranks},
                  {"rank", s.rank},
                  {"node", text_to_json(s.node)},
                  {"clock_offset_ns", s.clock_offset_ns},
                  {"clock_uncertainty_ns", s.clock_uncertainty_ns},
                  {"view", view}};
  return seal("session", session_format, json.dump());
}

Result<Session> decode_session(ByteView bytes) {
  auto json = open_text("session", bytes);
  if (!json) return json.status();
  Session session;
  std::string complaint;
  read_session(*json, session, complaint);
  if (!complaint.empty()) return Status(Kind::corrupt, "this session makes no sense: " + complaint);
  return session;
}

std::string encode(const SessionNote& note) {
  Json logs = Json::array();
  for (const std::string& log : note.logs) logs.push_back(text_to_json(log));
  const Json main{{"device", note.main.device}, {"inode", note.main.inode}, {"size", note.main.size}, {"change_ns", note.main.change_ns}};
  const Json json{{"session", note.session}, {"settled_segments", note.settled_segments}, {"logs", logs}, {"closed", note.closed}, {"main", main}};
  return seal("session-note", session_format, json.dump());
}

Result<SessionNote> decode_note(ByteView bytes) {
  constexpr uint64_t any = std::numeric_limits<uint64_t>::max();
  auto json = open_text("session-note", bytes);
  if (!json) return json.status();
  SessionNote note;
  std::string complaint;
  Fields fields(*json, "", complaint);
  fields.text("session", note.session, is_id);
  fields.small("settled_segments", note.settled_segments, 0, std::numeric_limits<uint32_t>::max());
  fields.flag("closed", note.closed);
  if (const Json* logs = fields.list("logs", max_logs))
    for (const Json& entry : *logs) {
      std::string log;
      if (!json_to_text(entry, log) || log.empty() || log.size() > max_text_bytes || log.find('\0') != std::string::npos)
        fields.complain("logs", "has an entry that is no name");
      note.logs.push_back(std::move(log));
    }
  if (const Json* main = fields.find("main")) {
    Fields state(*main, "main.", complaint);
    state.number("device", note.main.device, 0, any);
    state.number("inode", note.main.inode, 0, any);
    state.number("size", note.main.size, 0, any);
    state.time("change_ns", note.main.change_ns);
  }
  if (!complaint.empty()) return Status(Kind::corrupt, "this session's note makes no sense: " + complaint);
  return note;
}

}  // namespace holdfast::layout
