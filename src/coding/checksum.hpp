// Checksums of blocks (XXH3, 64 bits), seeded with where the block belongs. So an intact block of another file, row, unit or place fails like a
// damaged one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.hpp"

namespace holdfast::coding {

// `file_key` is any 64-bit value derived from the file's id.
uint64_t block_checksum(uint64_t file_key, uint64_t row, int unit, uint32_t block, ByteView content);
// The same for a block of `block_bytes` of which only `content` is not zero: what a short object's tail means.
uint64_t padded_block_checksum(uint64_t file_key, uint64_t row, int unit, uint32_t block, ByteView content, uint32_t block_bytes);
// For headers and records.
uint64_t plain_checksum(ByteView content, uint64_t seed = 0);

// plain_checksum() of what comes in pieces.
class RunningChecksum {
 public:
  explicit RunningChecksum(uint64_t seed);
  ~RunningChecksum();
  RunningChecksum(const RunningChecksum&) = delete;
  RunningChecksum& operator=(const RunningChecksum&) = delete;
  void add(ByteView piece);
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace holdfast::coding
