#include "engine/journal_overlay.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

namespace holdfast::engine {

using layout::RowRecord;

bool JournalOverlay::follow_manifest() {
  const std::vector<std::string>& named = located_.manifest.journals;
  const bool more_only = known_.size() <= named.size() && std::equal(known_.begin(), known_.end(), named.begin());
  if (!more_only) forget();
  bool all = true;
  unread_ = Status();
  for (size_t next = known_.size(); next < named.size(); ++next) {
    all &= add(named[next]);
    if (!unread_.ok()) break;  // the next look begins with this one
    known_.push_back(named[next]);
  }
  return all;
}

void JournalOverlay::forget() {
  places_.clear(), rows_.clear(), vouched_.clear(), known_.clear();
  unread_ = Status();
}

const RowRecord* JournalOverlay::record_of(uint64_t row) const {
  const auto found = rows_.find(row);
  return found == rows_.end() ? nullptr : &found->second;
}

const JournalPlace* JournalOverlay::place_of(uint64_t row, int unit) const {
  const auto found = places_.find({row, unit});
  return found == places_.end() ? nullptr : &found->second;
}

Intervals JournalOverlay::vouched_since(uint64_t row, uint64_t time_ns) const {
  Intervals all;
  const auto journals = vouched_.find(row);
  if (journals == vouched_.end()) return all;
  for (const auto& [generation, vouched] : journals->second)
    if (vouched.time_ns >= time_ns)
      for (const auto& [begin, end] : vouched.parts.ranges()) all.add(begin, end);
  return all;
}

bool JournalOverlay::add(const std::string& name) {
  auto found = std::make_shared<std::vector<std::vector<JournalEntry>>>(members_.count());
  const std::vector<Status> answers = members_.ask_each([&](int member) -> MemberCall {
    return [found, member, object = journal_object(located_, member, name), slot = records_.slot_bytes(), key = records_.key(),
            g = located_.manifest.geometry](MemberHandle& handle) {
      auto entries = scan_journal(handle, object, g, slot, key);
      if (entries.status().kind() == Kind::not_found) HF_TRY(no_journal_there(handle));
      if (!entries.ok()) return entries.status();
      (*found)[member] = std::move(*entries);
      return Status();
    };
  });
  for (int member = 0; member < members_.count(); ++member)
    if (answers[member].ok() && members_.available(member)) add_entries(name, member, (*found)[member]);
  return is_anywhere(answers);
}

void JournalOverlay::add_entries(const std::string& name, int member, const std::vector<JournalEntry>& entries) {
  const layout::Geometry& g = located_.manifest.geometry;
  for (const JournalEntry& entry : entries) {
    auto record = layout::decode_record(g, records_.key(), entry.header.row, entry.record);
    if (!record.ok()) continue;
    note_parts(vouched_[entry.header.row][record->generation], entry);
    RowRecord& known = rows_[entry.header.row];
    if (record->generation < known.generation) continue;
    if (entry.header.unit >= 0)
      places_[{entry.header.row, entry.header.unit}] = {journal_object(located_, member, name), entry.payload_offset, entry.header.stored};
    known = std::move(*record);
  }
}

// A row with many parts has several entries of one generation, and each member has its own copies of them.
void JournalOverlay::note_parts(Vouched& vouched, const JournalEntry& entry) const {
  vouched.time_ns = entry.header.time_ns;
  if (entry.parts.empty()) vouched.parts.add(0, located_.manifest.geometry.row_bytes());
  for (const auto& [begin, end] : entry.parts) vouched.parts.add(begin, end);
}

// A target that fails says nothing: where nobody has shown it, it may be gone. Where all fail it may as well be there.
bool JournalOverlay::is_anywhere(std::span<const Status> answers) {
  bool anywhere = false, gone = false;
  Status failure(Kind::lost, fmt::format("{}: no target is left that could show what others have synced", located_.manifest.path));
  for (int member = 0; member < members_.count(); ++member) {
    if (!members_.available(member)) continue;
    anywhere |= answers[member].ok();
    gone |= answers[member].kind() == Kind::not_found;
    if (!answers[member].ok()) failure = answers[member];
  }
  if (!anywhere && !gone) unread_ = failure;
  return anywhere;
}

}  // namespace holdfast::engine
