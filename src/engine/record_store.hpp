// Row records of one open file: read from all available members that have them (the highest generation wins, then the most copies), cached until told to forget.
#pragma once
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>

#include "engine/members.hpp"
#include "layout/manifest.hpp"
#include "layout/row_record.hpp"

namespace holdfast::engine {

class RecordStore {
 public:
  RecordStore(Members& members, const catalog::Located& located);

  // The row's record; generation 0 for a hole. Kind::lost where no available member can say.
  Result<layout::RowRecord> get(uint64_t row);
  // Whether get() has nothing to load, and so changes nothing.
  bool knows(uint64_t row) const { return cache_.contains(row) || is_hole(row); }
  void remember(const layout::RowRecord& record) { ++version_, cache_[record.row] = record; }
  // For who knows that no member has a record: until they are forgotten, nobody is asked.
  void note_that_there_are_none() { ++version_, cache_.clear(), holes_ = {{0, std::numeric_limits<uint64_t>::max()}}; }
  void forget_all() { ++version_, cache_.clear(), holes_.clear(); }
  // Changes whenever any record may have.
  uint64_t version() const { return version_; }
  size_t slot_bytes() const { return slot_bytes_; }
  std::string object_name(int member) const { return located_.meta_name(member, "sums"); }
  uint64_t key() const { return key_; }
  // The members that have the row's record.
  MemberSet holders(uint64_t row) const { return layout::record_holders(located_.manifest.geometry, row); }
  // The bytes to be written at row * slot_bytes of these members' sums objects.
  Bytes encode(std::span<const layout::RowRecord> consecutive) const;

 private:
  struct Slots;
  struct Asked {  // of a member
    uint64_t first = 0, rows = 0;
  };
  std::vector<Asked> asked_for(uint64_t first_row, uint64_t rows) const;
  Status load(uint64_t first_row, uint64_t rows);
  Status unreadable(uint64_t row) const;
  void take_wide(uint64_t first_row, uint64_t rows, std::span<const Slots> slots, std::span<const Status> answers);
  std::optional<layout::RowRecord> newest_of(uint64_t row, std::span<const Slots> slots, std::span<const Status> answers) const;
  bool is_hole(uint64_t row) const;

  Members& members_;
  const catalog::Located& located_;
  uint64_t key_;
  size_t slot_bytes_;
  uint64_t rows_at_once_;
  uint64_t version_ = 0;
  std::vector<Status> answers_;  // of the members, when they were asked last
  std::unordered_map<uint64_t, layout::RowRecord> cache_;
  // Beyond the end of all members' objects, as far as was read: first row to the one behind the last. What is in `cache_` counts first.
  std::map<uint64_t, uint64_t> holes_;
};

}  // namespace holdfast::engine
