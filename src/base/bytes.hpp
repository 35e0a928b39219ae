// Bytes and extents: the words that every room shares.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace holdfast {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;
using ByteSpan = std::span<std::byte>;

// `length` bytes of a logical file from `offset` on.
struct Extent {
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t end() const { return offset + length; }
  bool operator==(const Extent&) const = default;
};

inline uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }
inline uint64_t divide_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit; }

}  // namespace holdfast
