#include "coding/checksum.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "coding/xxh3.hpp"

namespace holdfast::coding {
namespace {

Bytes random_bytes(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count);
  for (auto& b : bytes) b = std::byte(random());
  return bytes;
}

TEST(Checksum, padding_is_the_same_as_writing_the_zeros_out) {
  for (uint32_t block_bytes : {4096u, 32768u, 65536u}) {
    for (size_t content_bytes :
         {size_t(0), size_t(1), size_t(63), size_t(240), size_t(241), size_t(1024), size_t(4095), size_t(4096), size_t(32767), size_t(65535)}) {
      if (content_bytes > block_bytes) continue;
      const Bytes content = random_bytes(content_bytes, content_bytes);
      Bytes padded = content;
      padded.resize(block_bytes);
      EXPECT_EQ(padded_block_checksum(1, 2, 3, 4, content, block_bytes), block_checksum(1, 2, 3, 4, padded))
          << content_bytes << " of " << block_bytes;
    }
  }
}

TEST(Checksum, the_same_bytes_elsewhere_have_another_checksum) {
  const Bytes content(32768);  // zeros: what a block that was never written looks like
  std::set<uint64_t> seen;
  int places = 0;
  for (uint64_t file : {0, 1, 77})
    for (uint64_t row : {0, 1, 2})
      for (int unit : {0, 1, 2})
        for (uint32_t block : {0u, 1u, 2u}) {
          seen.insert(block_checksum(file, row, unit, block, content));
          ++places;
        }
  EXPECT_EQ(int(seen.size()), places);
}

TEST(Checksum, every_flipped_bit_shows) {
  Bytes content = random_bytes(4096, 9);
  const uint64_t whole = block_checksum(1, 2, 3, 4, content);
  for (size_t bit = 0; bit < 8 * content.size(); bit += 7) {
    content[bit / 8] ^= std::byte(1 << bit % 8);
    ASSERT_NE(block_checksum(1, 2, 3, 4, content), whole) << "bit " << bit;
    content[bit / 8] ^= std::byte(1 << bit % 8);
  }
}

#ifdef __x86_64__
TEST(Checksum, every_kernel_gives_the_same_value) {
  const Bytes content = random_bytes(70000, 3);
  for (size_t bytes = 0; bytes < content.size(); bytes += 1 + bytes / 16) {
    for (uint64_t seed : {0ull, 1ull, ~0ull}) {
      const uint64_t expected = xxh3_baseline(content.data(), bytes, seed);
      EXPECT_EQ(xxh3(content.data(), bytes, seed), expected) << bytes;
      if (__builtin_cpu_supports("avx2")) {
        EXPECT_EQ(xxh3_avx2(content.data(), bytes, seed), expected) << bytes;
      }
      if (__builtin_cpu_supports("avx512f")) {
        EXPECT_EQ(xxh3_avx512(content.data(), bytes, seed), expected) << bytes;
      }
    }
  }
}
#endif

// On-disk format 1: these values never change.
TEST(Checksum, values_are_those_of_format_1) {
  Bytes content(4096);
  for (size_t i = 0; i < content.size(); ++i) content[i] = std::byte(i * 7);
  EXPECT_EQ(plain_checksum(content), 0x8fb047a89e810965ull);
  EXPECT_EQ(plain_checksum(content, 5), 0x8f076a883381abf7ull);
  EXPECT_EQ(block_checksum(0x0123456789abcdefull, 3, 2, 1, content), 0x41f65cffd1c9c693ull);
}

}  // namespace
}  // namespace holdfast::coding
