// Rows to units: coding, checksums, placement and the concurrent writes on the members.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/intervals.hpp"
#include "coding/code.hpp"
#include "engine/buffers.hpp"
#include "engine/members.hpp"
#include "engine/record_store.hpp"
#include "engine/row_blocks.hpp"

namespace holdfast::engine {

class RowReader;

// One row in memory: k pointers to unit_bytes each; bytes from `valid` on (counted in the row) are zero.
struct RowImage {
  uint64_t row = 0;
  std::vector<const std::byte*> data;
  uint64_t valid = 0;
};

struct CodedRow {
  layout::RowRecord record;
  std::vector<const std::byte*> units;  // k + m
  std::vector<uint64_t> stored;         // bytes of each unit that are written; the rest reads as zeros
  std::shared_ptr<Buffer> redundancy;
};

class RowWriter {
 public:
  RowWriter(Members& members, RecordStore& records, const catalog::Located& located);

  // Codes and checksums a row.
  CodedRow code(const RowImage& image, uint64_t generation) const;
  // Writes rows in place on all available members at once, each member's units before its records. Kind::lost where a row
  // has more than m units that did not arrive; members that failed are lost from then on.
  Status write_in_place(std::span<const CodedRow> rows);
  // The same in two steps: what was begun is on its way while its caller codes more. Several may be begun, and are finished in that order.
  Members::Begun begin_in_place(std::span<const CodedRow> rows);
  Status finish_in_place(std::span<const CodedRow> rows, Members::Begun& begun);

  // What was written in place while members were late (row_missed.cpp): whether there is any, and how a member that has come back gets it from
  // the others. Under the file's lock.
  bool any_missed() const { return missed_since_ == members_.late_since() && !missed_.ranges().empty(); }
  Status make_up(int member, RowReader& reader);

 private:
  CodedRow lay_out(const RowImage& image, uint64_t generation) const;
  Status check_arrived(const layout::RowRecord& record);
  void note_missed(std::span<const CodedRow> rows);
  Status make_up_row(int member, const layout::RowRecord& record, RowReader& reader);

  Members& members_;
  RecordStore& records_;
  const catalog::Located& located_;
  layout::Geometry geometry_;
  std::shared_ptr<const coding::Code> code_;
  RowBlocks blocks_;
  Intervals missed_;           // rows that late members have not got
  uint64_t missed_since_ = 0;  // Members::late_since of these
};

}  // namespace holdfast::engine
