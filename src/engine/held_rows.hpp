// Rows in memory. One was read or rebuilt whole, and the next reads are served from it. For a reader that goes through slow targets in order the row
// after it is on its way. Two rows and what one of them lacked, never more.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "engine/row_range.hpp"
#include "engine/row_rebuilder.hpp"

namespace holdfast::engine {

class HeldRows {
 public:
  HeldRows(Members& members, RecordStore& records, const catalog::Located& located, RowSources& sources, RowRebuilder& rebuilder);

  // Whether a row is small enough.
  bool may_hold() const;
  // From the row that is held; false where it is not that one, or lacks any of it.
  bool take(const RowRange& range) const;
  // Whether it is for read_sequentially: a small step.
  bool serves_steps_of(const RowRange& range) const { return range.length * 2 <= sources_.geometry().row_bytes() && may_hold(); }
  // A reader that goes on where it stopped, in small steps, from targets that are slow to answer. Each row is read once, from all its targets side by
  // side. While the steps are served from it the next one is on its way. False: nothing was read.
  bool read_sequentially(const RowRange& range);
  // A row that has to be rebuilt and whose other units are in memory. Units that a range wants whole go straight to it; the
  // others are held for the reads that follow. False where not all of them are in memory.
  bool hold_from_memory(const layout::RowRecord& record, std::span<const RowRange> ranges);
  // The same through the lanes. `next_row` will be wanted after it.
  Status hold_from_lanes(const layout::RowRecord& record, std::span<const RowRange> ranges, uint64_t next_row);
  void drop() { held_ = ahead_ = nullptr; }

 private:
  struct Row;
  bool lies_in_memory(const layout::RowRecord& record, const RowRange& range) const;
  std::vector<int> order_for(uint64_t row, uint64_t data_units) const;
  std::shared_ptr<Row> start_row(const layout::RowRecord& record);
  std::shared_ptr<Row> row_under_way(const layout::RowRecord& record);
  void start_ahead(uint64_t row);
  Status finish_row(Row& row, bool rebuild);

  Members& members_;
  RecordStore& records_;
  const catalog::Located& located_;
  RowSources& sources_;
  RowRebuilder& rebuilder_;
  // Good as long as no record has changed since.
  std::shared_ptr<Row> held_, ahead_;
};

}  // namespace holdfast::engine
