// Distributed Write: each replica writes a chunk of what all have agreed on, and they meet once more. Where one was lost in between, or has failed, the
// leader writes all of it. The bytes are the same, and who was lost writes no more.
#include "base/meter.hpp"
#include "file/coordinated/coordinated.hpp"

namespace holdfast::file {

namespace {

Status write_chunk(const Common& file, std::span<const Extent> extents, ByteView data, uint64_t writers) {
  const Share mine = share_of(data.size(), writers, file.replica.place().team);
  if (mine.begin == mine.end) return Status();
  return file.below.write(part_of(extents, mine.begin, mine.end), data.subspan(mine.begin, mine.end - mine.begin));
}

}  // namespace

Outcome write_distributed(const Common& file, std::span<const Extent> extents, ByteView data, Paces* paces) {
  auto* const sharing = redundant::Sharing::of(file.replica);
  if (!sharing || data.size() < least_shared) return write_simply(file, extents, data);
  const uint64_t began_ns = paces ? meter_now_ns() : 0;
  const auto took = [&](bool shared) {
    if (paces) paces->took(Work::write, shared, data.size(), meter_now_ns() - began_ns);
  };
  redundant::Claim claim{.call = uint64_t(Call::write), .at = extents[0].offset, .bytes = data.size(), .sum = sum_of(extents, data)};
  const Outcome agreed = file.meet(claim, "a write", [&](const redundant::Turn&) {
    if (!paces || paces->shares(Work::write, data.size())) return Outcome{.value = sharing->living().teams};
    const Status written = file.below.write(extents, data);
    if (written.ok()) took(false);
    return Outcome{written};
  });
  if (!agreed.status.ok() || agreed.value == 0) return agreed;
  const Status mine = write_chunk(file, extents, data, agreed.value);
  claim.call = uint64_t(Call::end_of_write);
  claim.view = uint64_t(mine.to_errno());
  Outcome outcome = file.meet(claim, "the end of a write", [&](const redundant::Turn& turn) {
    const bool all_have_written = mine.ok() && turn.same_view && !turn.again && sharing->living().teams == agreed.value;
    if (all_have_written) took(true);
    return Outcome{all_have_written ? Status() : file.below.write(extents, data)};
  });
  outcome.is_own = false;  // no replica has written all of it
  outcome.value = agreed.value;
  return outcome;
}

}  // namespace holdfast::file
