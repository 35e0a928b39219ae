#include "engine/record_store.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>

namespace holdfast::engine {

using layout::RowRecord;

namespace {
constexpr size_t cache_limit_bytes = 16 << 20;
constexpr uint64_t load_bytes = 96 << 10;     // one read brings the records of many rows
constexpr uint64_t rows_at_once_if_wide = 4;  // each asks other members
}  // namespace

RecordStore::RecordStore(Members& members, const catalog::Located& located)
    : members_(members),
      located_(located),
      key_(layout::file_key(located.manifest.file_id)),
      slot_bytes_(layout::record_slot_bytes(located.manifest.geometry)),
      rows_at_once_(located.manifest.geometry.is_wide() ? rows_at_once_if_wide : std::max<uint64_t>(1, load_bytes / slot_bytes_)) {}

Bytes RecordStore::encode(std::span<const RowRecord> consecutive) const {
  Bytes bytes(consecutive.size() * slot_bytes_);
  for (size_t i = 0; i < consecutive.size(); ++i)
    if (consecutive[i].generation != 0)  // a row that was never written has a slot of zeros
      layout::encode_record(located_.manifest.geometry, key_, consecutive[i], bytes.data() + i * slot_bytes_);
  return bytes;
}

bool RecordStore::is_hole(uint64_t row) const {
  auto after = holes_.upper_bound(row);
  return after != holes_.begin() && row < std::prev(after)->second;
}

Result<RowRecord> RecordStore::get(uint64_t row) {
  if (auto it = cache_.find(row); it != cache_.end()) return it->second;
  if (is_hole(row)) return RowRecord{row, 0, {}};
  if (cache_.size() * slot_bytes_ > cache_limit_bytes) cache_.clear(), holes_.clear();
  HF_TRY(load(row / rows_at_once_ * rows_at_once_, rows_at_once_));
  if (is_hole(row)) return RowRecord{row, 0, {}};
  auto it = cache_.find(row);
  return it == cache_.end() ? Result<RowRecord>(unreadable(row)) : it->second;
}

// What each member answered when it was asked last.
Status RecordStore::unreadable(uint64_t row) const {
  std::string why;
  int asked = 0, no_descriptor = 0;
  for (const int member : holders(row)) {
    const Status& answer = answers_[size_t(member)];
    const bool available = members_.available(member);
    why += fmt::format("{}{} ({})", why.empty() ? "" : "; ", members_.path(member),
                       !available    ? members_.why(member)
                       : answer.ok() ? "what it has does not verify"
                                     : answer.sentence());
    asked += available && !answer.ok();
    no_descriptor += available && answer.sys_errno() == EMFILE;
  }
  return Status(Kind::lost, fmt::format("row {} of {}: its record cannot be read from any target: {}", row, located_.manifest.path, why),
                asked > 0 && no_descriptor == asked ? EMFILE : members_.reason());
}

// What a member answered: slots one after another, without what lies beyond the object's end.
struct RecordStore::Slots {
  std::unique_ptr<std::byte[]> bytes;
  uint64_t first = 0;
  size_t count = 0;
};

// By member: all of these rows, or those between the first and the last one whose record it has.
std::vector<RecordStore::Asked> RecordStore::asked_for(uint64_t first_row, uint64_t rows) const {
  const auto count = size_t(members_.count());
  if (!located_.manifest.geometry.is_wide()) return std::vector<Asked>(count, Asked{first_row, rows});
  std::vector<Asked> asked(count);
  for (uint64_t row = first_row; row < first_row + rows; ++row)
    for (const int member : holders(row)) {
      Asked& one = asked[size_t(member)];
      if (one.rows == 0) one.first = row;
      one.rows = row - one.first + 1;
    }
  return asked;
}

// Rows for which every available member's slot is damaged or out of reach stay out of the cache.
Status RecordStore::load(uint64_t first_row, uint64_t rows) {
  auto slots = std::make_shared<std::vector<Slots>>(members_.count());
  const std::vector<Asked> asked = asked_for(first_row, rows);
  std::vector<Status> answers = members_.ask_each([&](int member) -> MemberCall {
    const Asked& one = asked[size_t(member)];
    if (one.rows == 0) return {};
    return [slots, member, first = one.first, bytes = one.rows * slot_bytes_, slot_bytes = slot_bytes_,
            name = object_name(member)](MemberHandle& handle) {
      auto buffer = std::make_unique_for_overwrite<std::byte[]>(bytes);
      auto opened = handle.object(name, target::OpenMode::read);
      if (!opened.ok()) return opened.status();
      iovec into{buffer.get(), bytes};
      auto got = (*opened)->read(first * slot_bytes, std::span<const iovec>(&into, 1));
      if (!got.ok()) return got.status();
      (*slots)[member] = {std::move(buffer), first, *got / slot_bytes};
      return Status();
    };
  });
  answers_ = answers;
  if (located_.manifest.geometry.is_wide()) {
    take_wide(first_row, rows, *slots, answers);
    return Status();
  }
  uint64_t longest = 0;
  for (int member = 0; member < members_.count(); ++member)
    if (members_.available(member) && answers[member].ok()) longest = std::max<uint64_t>(longest, (*slots)[member].count);
  for (uint64_t row = first_row; row < first_row + longest; ++row)
    if (!cache_.contains(row) && !is_hole(row))
      if (auto best = newest_of(row, *slots, answers)) cache_[row] = std::move(*best);
  // Behind the end of all objects each row is what the first one is.
  const uint64_t behind = std::max(first_row + longest, located_.manifest.rows);
  if (behind < first_row + rows && newest_of(behind, *slots, answers)) holes_[behind] = first_row + rows;
  return Status();
}

// Each row has other members, so none says anything of another one.
void RecordStore::take_wide(uint64_t first_row, uint64_t rows, std::span<const Slots> slots, std::span<const Status> answers) {
  for (uint64_t row = first_row; row < first_row + rows; ++row)
    if (!cache_.contains(row) && !is_hole(row))
      if (auto best = newest_of(row, slots, answers)) cache_[row] = std::move(*best);
}

// Nothing where no available member can say.
std::optional<RowRecord> RecordStore::newest_of(uint64_t row, std::span<const Slots> slots, std::span<const Status> answers) const {
  // A sums object that ends before the last synced row has been cut: its silence says nothing about holes.
  const bool silence_is_a_hole = row >= located_.manifest.rows;
  // Before a commit ranks need not know of each other's lost members: of one generation the record counts that most have.
  struct Candidate {
    RowRecord record;
    int votes = 1;
  };
  std::vector<Candidate> newest;
  bool known = false;
  for (const int member : holders(row)) {
    if (!members_.available(member)) continue;
    const Status& answer = answers[size_t(member)];
    const Slots& there = slots[size_t(member)];
    const uint64_t index = row - there.first;
    if (!answer.ok() || index >= there.count) {
      // No object at all: fine as long as nothing was ever synced.
      known |= silence_is_a_hole && (answer.ok() || answer.kind() == Kind::not_found);
      continue;
    }
    auto record = layout::decode_record(located_.manifest.geometry, key_, row, ByteView(there.bytes.get() + index * slot_bytes_, slot_bytes_));
    if (!record.ok()) continue;
    known = true;
    if (record->generation == 0 || (!newest.empty() && record->generation < newest[0].record.generation)) continue;
    if (!newest.empty() && record->generation > newest[0].record.generation) newest.clear();
    const auto same = std::find_if(newest.begin(), newest.end(), [&](const Candidate& candidate) { return candidate.record == *record; });
    if (same != newest.end()) ++same->votes;
    else newest.push_back({std::move(*record)});
  }
  if (!known) return {};
  if (newest.empty()) return RowRecord{row, 0, {}};
  return std::move(std::max_element(newest.begin(), newest.end(), [](const Candidate& a, const Candidate& b) { return a.votes < b.votes; })->record);
}

}  // namespace holdfast::engine
