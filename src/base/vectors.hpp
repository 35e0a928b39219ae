// Scattered pieces of memory, as vectored calls take them.
#pragma once
#include <sys/uio.h>

#include "base/bytes.hpp"

namespace holdfast {

inline uint64_t total_bytes(std::span<const iovec> vectors) {
  uint64_t total = 0;
  for (const iovec& one : vectors) total += one.iov_len;
  return total;
}

inline Bytes concatenated(std::span<const iovec> vectors) {
  Bytes all;
  all.reserve(total_bytes(vectors));
  for (const iovec& one : vectors) {
    const auto* begin = static_cast<const std::byte*>(one.iov_base);
    all.insert(all.end(), begin, begin + one.iov_len);
  }
  return all;
}

}  // namespace holdfast
