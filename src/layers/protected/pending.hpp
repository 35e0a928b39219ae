// Partial rows that this process wrote and that no row's owner has folded in yet, in memory.
#pragma once
#include <map>
#include <memory>

#include "base/bytes.hpp"
#include "layers/protected/intervals.hpp"

namespace holdfast::layers {

// A row's worth of zeroed memory of which only touched pages exist: rows may be far larger than what is written.
class RowBuffer {
 public:
  explicit RowBuffer(uint64_t bytes);
  ~RowBuffer();
  RowBuffer(RowBuffer&& other) noexcept : data_(other.data_), bytes_(other.bytes_) { other.data_ = nullptr; }
  RowBuffer(const RowBuffer&) = delete;
  RowBuffer& operator=(RowBuffer&&) = delete;
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  bool valid() const { return data_ != nullptr; }

 private:
  std::byte* data_;
  uint64_t bytes_;
};

class Pending {
 public:
  struct Row {
    explicit Row(uint64_t row_bytes) : buffer(row_bytes) {}
    RowBuffer buffer;
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
