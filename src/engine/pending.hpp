// Partial rows that this process wrote and that no row's owner has folded in yet: in memory, and what does not fit parked
// in the spill.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "base/intervals.hpp"
#include "engine/buffers.hpp"
#include "engine/spill.hpp"

namespace holdfast::engine {

class Pending {
 public:
  // A write as it came: for the owner, who applies all ranks' pieces in the order of their time.
  struct Write {
    uint64_t begin = 0, end = 0;  // in the row
    uint64_t time_ns = 0;
  };
  struct Row {
    std::unique_ptr<Buffer> buffer;  // only `in_memory` ranges mean anything; null where all is parked
    Intervals in_memory;
    std::vector<SpilledRange> parked;  // older than what is in memory
    Intervals covered;                 // both
    std::vector<Write> pieces;         // in the order of their time
  };
  Pending(uint64_t row_bytes, uint64_t memory_limit_bytes, Spill& spill) : row_bytes_(row_bytes), limit_(memory_limit_bytes), spill_(spill) {}

  // Takes `length` bytes at `offset` in the row; parks older rows where memory is short.
  Status add(uint64_t row, uint64_t offset, const std::byte* from, uint64_t length);
  Row* find(uint64_t row);
  // All that is pending of a row, from where it is: only covered() means anything. What was parked is read into `room`.
  Result<const std::byte*> bytes_of(const Row& row, std::unique_ptr<Buffer>& room);
  void drop(uint64_t row);
  void drop_all();
  uint64_t memory_bytes() const { return bytes_; }
  bool empty() const { return rows_.empty(); }
  std::map<uint64_t, Row>& rows() { return rows_; }
  // Copies what is pending of [offset, offset + length) of a row over `into`.
  Status overlay(uint64_t row, uint64_t offset, uint64_t length, std::byte* into);

 private:
  Status park(Row& row);
  Status make_room(uint64_t but_not_row);

  uint64_t row_bytes_, limit_;
  Spill& spill_;
  std::map<uint64_t, Row> rows_;
  uint64_t bytes_ = 0;  // in memory
};

// Nanoseconds of the machine's wall clock: the order between ranks.
uint64_t now_ns();

}  // namespace holdfast::engine
