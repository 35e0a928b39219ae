#include "layers/shared_records/left_records.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "layers/shared_records/names.hpp"

namespace holdfast::layers {

using layout::Entry;
using layout::EntryKind;

namespace {

// Records of one log, in a list.
class ListSource final : public RecordSource {
 public:
  ListSource(std::shared_ptr<LeftLog> log, std::vector<PendingRecord> records) : log_(std::move(log)), records_(std::move(records)) {}
  Result<std::vector<PendingRecord>> next(size_t most) override {
    const size_t count = std::min(most, records_.size() - given_);
    std::vector<PendingRecord> some(records_.begin() + std::ptrdiff_t(given_), records_.begin() + std::ptrdiff_t(given_ + count));
    given_ += count;
    return some;
  }
  Status read(std::span<const PendingRecord> records, ByteSpan packed) override { return log_->read(records, packed); }
  Status read_part(const PendingRecord& record, uint64_t from, ByteSpan into) override { return log_->read_part(record.position + from, into); }
  uint64_t seed() const override { return log_->key(); }

 private:
  std::shared_ptr<LeftLog> log_;
  std::vector<PendingRecord> records_;
  size_t given_ = 0;
};

// The newest note of all copies.
Result<layout::SessionNote> note_of(const Shelf& shelf, const std::string& name) {
  layout::SessionNote best;
  bool any = false;
  auto copies = shelf.get(name, layout::max_session_bytes);
  if (!copies) return copies.status();
  for (const Bytes& bytes : *copies) {
    auto note = layout::decode_note(bytes);
    if (!note.ok()) return note.status();
    if (!any || note->settled_segments > best.settled_segments || (note->closed && !best.closed)) best = std::move(*note);
    any = true;
  }
  return best;
}

std::string note_name(const LeftSession& session) { return fmt::format("{:08}-{}.note", session.number, session.id); }

bool begins(const std::string& text, const std::string& with) { return text.compare(0, with.size(), with) == 0; }

}  // namespace

void keep_what_is_there(ByteSpan packed, ByteView there, uint64_t offset) {
  constexpr uint64_t sector_bytes = 512;
  for (uint64_t at = 0; at < packed.size();) {
    const uint64_t end = std::min<uint64_t>(packed.size(), at + sector_bytes - (offset + at) % sector_bytes);
    const ByteView present = at < there.size() ? there.subspan(at, std::min<uint64_t>(end, there.size()) - at) : ByteView();
    const bool lost = std::all_of(present.begin(), present.end(), [](std::byte b) { return b == std::byte{0}; });
    if (!lost) std::copy(present.begin(), present.end(), packed.begin() + std::ptrdiff_t(at));
    at = end;
  }
}

Result<std::unique_ptr<LeftRecords>> LeftRecords::find(std::shared_ptr<Shelf> shelf, const FindCommon& common, IsLeft is_left) {
  auto left = std::make_unique<LeftRecords>();
  left->shelf_ = shelf;
  left->is_left_ = std::move(is_left);
  auto names = shelf->list();
  if (!names) return names.status();
  std::map<std::string, LeftSession> found;
  for (const std::string& name : *names) {
    const auto parsed = parse_record_name(name);
    if (!parsed) continue;
    LeftSession& session = found[parsed->session];
    session.number = parsed->number;
    session.id = parsed->session;
    if (parsed->note) {
      auto note = note_of(*shelf, name);
      if (!note) return note.status();
      session.note = std::move(*note);
      continue;
    }
    auto log = LeftLog::open(*shelf, name);
    if (!log) return log.status();
    left->logs_[session.id].push_back({*log, shelf, name, false, {}, {}, {}});
  }
  for (auto& [id, session] : found) {
    for (const std::string& place : session.note.logs) {
      auto where = common(place);
      if (!where) return where.status();
      auto objects = where->first->list();
      if (!objects) return objects.status();
      for (const std::string& name : *objects) {
        if (!begins(name, where->second + ".")) continue;
        auto log = LeftLog::open(*where->first, name);
        if (!log) return log.status();
        left->logs_[id].push_back({*log, where->first, name, true, {}, {}, {}});
      }
    }
    if (Status status = left->scan(session, left->logs_[id]); !status.ok()) return status;
    left->sessions_.push_back(session);
  }
  std::sort(left->sessions_.begin(), left->sessions_.end(), [](const LeftSession& a, const LeftSession& b) { return a.number < b.number; });
  for (LeftSession& session : left->sessions_) session.superseded = session.number < left->sessions_.back().number;
  return left;
}

Status LeftRecords::take_entry(LeftSession& session, Log& log, const ScannedEntry& found) {
  if (found.entry.session != layout::session_key(session.id)) return take_other(log, found);
  if (found.entry.kind == EntryKind::session) {
    auto text = log.log->payload(found);
    if (!text) return text.status();
    auto about = layout::decode_session(*text);
    if (!about) return about.status();
    log.descriptions.push_back(*about);
    if (!session.described) session.about = *about;
    session.described = true;
    return Status();
  }
  if (log.descriptions.empty()) {  // its description was torn off: nobody can say where it belongs
    ++session.torn;
    return Status();
  }
  log.items.push_back({found, log.descriptions.size() - 1});
  session.uncertainty_ns = std::max(session.uncertainty_ns, found.entry.uncertainty_ns);
  return Status();
}

Status LeftRecords::take_other(Log& log, const ScannedEntry& found) {
  std::optional<layout::Session>& other = log.others[found.entry.session];
  if (other || found.entry.kind != EntryKind::session) return Status();
  auto text = log.log->payload(found);
  if (!text) return text.status();
  if (auto about = layout::decode_session(*text); about.ok()) other = std::move(*about);
  return Status();
}

// Whether other files' records wait in it, as far as that can be known.
bool LeftRecords::still_needed(const Log& log) {
  bool needed = false;
  for (const auto& [key, other] : log.others) {
    if (other && is_left_ && !is_left_(*other)) continue;
    if (other) kept_for_.insert(other->path);
    needed = true;
  }
  return needed;
}

Status LeftRecords::scan(LeftSession& session, std::vector<Log>& logs) {
  for (Log& log : logs) {
    HF_TRY(log.log->scan([&](const ScannedEntry& found) { return take_entry(session, log, found); }));
    if (log.log->torn() == 0) continue;
    if (session.torn_in.empty()) session.torn_in = fmt::format("{} at byte {}", log.object_name, log.log->torn_at());
    session.torn += log.log->torn();
  }
  count(session, logs);
  return Status();
}

// Which segments were placed already: their own mark, or anything that came after them, says so.
void LeftRecords::count(LeftSession& session, const std::vector<Log>& logs) const {
  uint32_t latest = 0;
  std::set<uint32_t> placed;
  for (const Log& log : logs)
    for (const Log::Item& item : log.items) {
      latest = std::max(latest, item.entry.entry.segment);
      if (item.entry.entry.kind == EntryKind::placed && item.entry.entry.id == 0) placed.insert(item.entry.entry.segment);
    }
  for (const Log& log : logs)
    for (const Log::Item& item : log.items) {
      const Entry& e = item.entry.entry;
      if (e.kind != EntryKind::record || e.segment < latest || placed.contains(e.segment) || e.segment < session.note.settled_segments) continue;
      ++session.records;
      session.bytes += e.length;
    }
}

Status LeftRecords::check_not_running(const LeftSession& session) const {
  auto found = logs_.find(session.id);
  if (found == logs_.end()) return Status();
  for (const Log& log : found->second)
    for (const Shelf::Holder& holder : log.shelf->holders()) {
      const Status status = holder.run([target = holder.target, name = holder.prefix + log.object_name] {
        auto object = target->open(name, target::OpenMode::read);  // locking would make it
        if (!object.ok()) return Status();
        return target->try_lock(name).status();
      });
      if (status.kind() == Kind::busy)
        return Status(
            Kind::busy,
            fmt::format("the job that writes it is still running (its log {} is in use: {}); merge when it has ended, or with --break-locks if "
                        "it died on another node",
                        log.object_name, status.sentence()));
    }
  return Status();
}

Result<std::vector<std::string>> LeftRecords::break_locks() const {
  std::set<std::shared_ptr<Shelf>> shelves{shelf_};
  for (const auto& [session, logs] : logs_)
    for (const Log& log : logs) shelves.insert(log.shelf);
  std::vector<std::string> broken;
  for (const auto& shelf : shelves) {
    auto names = shelf->break_locks();
    if (!names) return names;
    broken.insert(broken.end(), names->begin(), names->end());
  }
  return broken;
}

// One stretch of records with a place of their own.
struct LeftRecords::Group {
  uint64_t base = 0;
  bool filling = false;
  layout::SessionView view;
  std::vector<std::pair<std::shared_ptr<LeftLog>, std::vector<PendingRecord>>> logs;
};

Result<Merged> LeftRecords::place_group(Group& group, const PlaceInView& place, const MergeProgress& progress) {
  std::vector<std::unique_ptr<ListSource>> sources;
  std::vector<RecordSource*> pointers;
  for (auto& [log, records] : group.logs) {
    if (records.empty()) continue;
    sources.push_back(std::make_unique<ListSource>(log, std::move(records)));
    pointers.push_back(sources.back().get());
  }
  if (pointers.empty()) return Merged{group.base, 0, 0};
  auto alone = exchange::make_solo();
  const Place in_view = [&](std::span<const Extent> extents, ByteView packed) { return place(group.view, extents, packed, group.filling); };
  return merge_records(*alone, pointers, group.base, in_view, progress);
}

// What one log has in a segment. Claims take its records below their number that no earlier claim took. What is left is for the segment's common
// order.
class LeftRecords::SegmentOfLog {
 public:
  SegmentOfLog(const Log& log, uint32_t segment) : log_(log) {
    for (const Log::Item& item : log.items)
      if (item.entry.entry.segment == segment) take(item);
  }
  uint64_t base = 0;  // the shared pointer is known to have stood here
  std::vector<PendingRecord> records;
  std::vector<Group> claims;
  uint64_t claims_placed = 0;  // claimed records below this number were written
  const layout::SessionView* view = nullptr;

 private:
  void take(const Log::Item& item) {
    const Entry& e = item.entry.entry;
    if (e.kind == EntryKind::record || e.kind == EntryKind::pointer) base = std::max(base, e.base);
    if (e.kind == EntryKind::placed && e.id > 0) claims_placed = e.id;
    if (e.kind == EntryKind::record || e.kind == EntryKind::claimed) view = &log_.descriptions[item.description].view;
    if (e.kind == EntryKind::record) records.push_back(pending_of(item.entry));
    if (e.kind == EntryKind::claimed) claim(e);
  }
  void claim(const Entry& e) {
    const auto end = std::find_if(records.begin(), records.end(), [&](const PendingRecord& r) { return r.id >= e.id; });
    Group claim{e.base, false, *view, {{log_.log, {records.begin(), end}}}};
    uint64_t bytes = 0;
    for (auto it = records.begin(); it != end; ++it) bytes += it->length;
    records.erase(records.begin(), end);
    base = std::max(base, e.base + bytes);
    claims.push_back(std::move(claim));
  }
  const Log& log_;
};

Result<Merged> LeftRecords::merge(const LeftSession& session, bool keeps_unsynced, const PlaceInView& place, const MergeProgress& progress) {
  if (session.note.closed) {
    // From here on the main file is not as the job left it, and a merge that is cut short must find nothing wrong with that.
    layout::SessionNote begun = session.note;
    begun.closed = false;
    begun.main = {};
    if (Status status = shelf_->put(note_name(session), layout::encode(begun), true); !status.ok()) return status;
  }
  const std::vector<Log>& logs = logs_[session.id];
  std::set<uint32_t> segments, placed;
  for (const Log& log : logs)
    for (const Log::Item& item : log.items) {
      const Entry& e = item.entry.entry;
      if (e.segment >= session.note.settled_segments) segments.insert(e.segment);
      if (e.kind == EntryKind::placed && e.id == 0) placed.insert(e.segment);
    }
  std::vector<Group> groups;
  for (const uint32_t segment : segments) {
    const bool segment_placed = placed.contains(segment) || segment != *segments.rbegin();
    Group common;
    common.filling = segment_placed && keeps_unsynced;
    for (const Log& log : logs) {
      SegmentOfLog part(log, segment);
      common.base = std::max(common.base, part.base);
      if (part.view) common.view = *part.view;
      for (Group& claim : part.claims) {
        const auto& records = claim.logs[0].second;
        claim.filling = keeps_unsynced && (segment_placed || (!records.empty() && records.back().id < part.claims_placed));
        groups.push_back(std::move(claim));
      }
      common.logs.push_back({log.log, std::move(part.records)});
    }
    groups.push_back(std::move(common));
  }
  Merged total;
  for (Group& group : groups) {
    const uint64_t before = total.bytes;
    auto merged = place_group(group, place, [&](uint64_t bytes) { return !progress || progress(before + bytes); });
    if (!merged) return merged;
    total.end = std::max(total.end, merged->end);
    total.records += merged->records;
    total.bytes += merged->bytes;
  }
  return total;
}

Status LeftRecords::discard(const LeftSession& session) {
  layout::SessionNote note = session.note;
  note.session = session.id;
  note.settled_segments = UINT32_MAX;
  HF_TRY(shelf_->put(note_name(session), layout::encode(note), true));
  kept_for_.clear();
  for (const Log& log : logs_[session.id]) {
    if (still_needed(log)) continue;
    HF_TRY(log.shelf->remove_emptied(log.object_name));
    if (log.common) log.shelf->tidy();
  }
  logs_.erase(session.id);
  shelf_->remove(note_name(session));
  shelf_->tidy();
  return Status();
}

}  // namespace holdfast::layers
