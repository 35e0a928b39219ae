#include "coding/checksum.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#define XXH_STATIC_LINKING_ONLY  // for a state on the stack
#include <xxhash.h>

#include "coding/xxh3.hpp"

namespace holdfast::coding {

// Checksums and what they are seeded with are on-disk format; big-endian machines would need byte swaps here.
static_assert(std::endian::native == std::endian::little);

namespace {
constexpr size_t zero_bytes = 64 << 10;  // the largest checksum block
alignas(64) constexpr std::array<std::byte, zero_bytes> zeros{};

uint64_t seed_of(uint64_t file_key, uint64_t row, int unit, uint32_t block) {
  const std::array<uint64_t, 4> place{file_key, row, uint64_t(unit), block};
  return XXH3_64bits(place.data(), sizeof(place));
}
}  // namespace

uint64_t block_checksum(uint64_t file_key, uint64_t row, int unit, uint32_t block, ByteView content) {
  return xxh3(content.data(), content.size(), seed_of(file_key, row, unit, block));
}

uint64_t padded_block_checksum(uint64_t file_key, uint64_t row, int unit, uint32_t block, ByteView content, uint32_t block_bytes) {
  if (content.size() >= block_bytes) return block_checksum(file_key, row, unit, block, content.first(block_bytes));
  const uint64_t seed = seed_of(file_key, row, unit, block);
  if (content.empty() && block_bytes <= zero_bytes) return xxh3(zeros.data(), block_bytes, seed);
  XXH3_state_t state;  // rare (an object's last block), so the plain library will do
  XXH3_64bits_reset_withSeed(&state, seed);
  XXH3_64bits_update(&state, content.data(), content.size());
  for (size_t left = block_bytes - content.size(); left > 0;) {
    const size_t now = std::min(left, zero_bytes);
    XXH3_64bits_update(&state, zeros.data(), now);
    left -= now;
  }
  return XXH3_64bits_digest(&state);
}

uint64_t plain_checksum(ByteView content, uint64_t seed) { return xxh3(content.data(), content.size(), seed); }

struct RunningChecksum::State {
  XXH3_state_t state;
};
RunningChecksum::RunningChecksum(uint64_t seed) : state_(std::make_unique<State>()) { XXH3_64bits_reset_withSeed(&state_->state, seed); }
RunningChecksum::~RunningChecksum() = default;
void RunningChecksum::add(ByteView piece) { XXH3_64bits_update(&state_->state, piece.data(), piece.size()); }
uint64_t RunningChecksum::value() const { return XXH3_64bits_digest(&state_->state); }

}  // namespace holdfast::coding
