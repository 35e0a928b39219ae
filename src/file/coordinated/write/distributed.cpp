// Distributed Write: each replica writes a chunk of what all have agreed on, and they meet once more. Where one was lost in between, or has failed, the
// leader writes all of it: the bytes are the same, and who was lost writes no more.
#include <bit>

#include "file/coordinated/coordinated.hpp"

namespace holdfast::file {

namespace {

Status write_chunk(const Common& file, std::span<const Extent> extents, ByteView data, uint64_t writers) {
  constexpr uint64_t page = 4096;
  const int team = file.replica.place().team;
  if (!(writers >> team & 1)) return Status();
  const uint64_t place = uint64_t(std::popcount(writers & ((uint64_t(1) << team) - 1)));
  const uint64_t chunk = round_up(divide_up(data.size(), uint64_t(std::popcount(writers))), page);
  const uint64_t begin = std::min<uint64_t>(place * chunk, data.size()), end = std::min<uint64_t>(begin + chunk, data.size());
  return begin == end ? Status() : file.below.write(part_of(extents, begin, end), data.subspan(begin, end - begin));
}

}  // namespace

Outcome write_distributed(const Common& file, std::span<const Extent> extents, ByteView data) {
  auto* const sharing = redundant::Sharing::of(file.replica);
  if (!sharing || data.size() < least_shared) return write_simply(file, extents, data);
  redundant::Claim claim{.call = uint64_t(Call::write), .at = extents[0].offset, .bytes = data.size(), .sum = sum_of(extents, data)};
  const Outcome agreed = file.meet(claim, "a write", [&](const redundant::Turn&) { return Outcome{.value = sharing->living().teams}; });
  if (!agreed.status.ok()) return agreed;
  const Status mine = write_chunk(file, extents, data, agreed.value);
  claim.call = uint64_t(Call::end_of_write);
  claim.view = uint64_t(mine.to_errno());
  Outcome outcome = file.meet(claim, "the end of a write", [&](const redundant::Turn& turn) {
    const bool all_have_written = mine.ok() && turn.same_view && !turn.again && sharing->living().teams == agreed.value;
    return Outcome{all_have_written ? Status() : file.below.write(extents, data)};
  });
  outcome.is_own = false;  // no replica has written all of it
  outcome.value = agreed.value;
  return outcome;
}

}  // namespace holdfast::file
