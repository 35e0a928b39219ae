// Partial rows that this process wrote and that no row's owner has folded in yet, in memory.
#pragma once
#include <map>
#include <memory>

#include "base/bytes.hpp"
#include "layers/protected/buffers.hpp"
#include "layers/protected/intervals.hpp"

namespace holdfast::layers {

class Pending {
 public:
  struct Row {
    explicit Row(uint64_t row_bytes) : buffer(row_bytes) {}
    Buffer buffer;  // only covered ranges mean anything
    Intervals covered;
  };
  explicit Pending(uint64_t row_bytes) : row_bytes_(row_bytes) {}

  // Takes `length` bytes at `offset` in the row; false where there is no memory for it.
  bool add(uint64_t row, uint64_t offset, const std::byte* from, uint64_t length);
  Row* find(uint64_t row);
  void drop(uint64_t row);
  bool empty() const { return rows_.empty(); }
  uint64_t bytes() const { return bytes_; }
  std::map<uint64_t, Row>& rows() { return rows_; }
  void clear() { rows_.clear(), bytes_ = 0; }
  // Copies what is pending of [offset, offset + length) of a row over `into`.
  void overlay(uint64_t row, uint64_t offset, uint64_t length, std::byte* into);

 private:
  uint64_t row_bytes_;
  std::map<uint64_t, Row> rows_;
  uint64_t bytes_ = 0;
};

}  // namespace holdfast::layers
