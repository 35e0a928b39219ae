// How every read ends.
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/meter.hpp"
#include "coding/checksum.hpp"
#include "file/coordinated/coordinated.hpp"

namespace holdfast::file {

namespace {

// A count, whether the next read is shared out, and who has ended this one, in one number: of 64 teams no more live at once than replicas are asked for.
constexpr int team_bits = 6, teams_at = 64 - redundant::most_replicas * team_bits;
constexpr uint64_t shared_bit = uint64_t(1) << (teams_at - 1), count_mask = shared_bit - 1;
static_assert(redundant::most_teams == 1 << team_bits);

// Their numbers, from the first one on. Who is left over does not take part in the next read, and is sent it whole.
uint64_t packed(uint64_t teams) {
  if (teams == 0) return 0;
  uint64_t numbers = 0;
  for (int place = 0; place < redundant::most_replicas; ++place) {
    numbers = numbers << team_bits | uint64_t(std::countr_zero(teams));
    if (!std::has_single_bit(teams)) teams &= teams - 1;  // else it is named again
  }
  return numbers;
}

uint64_t unpacked(uint64_t numbers) {
  uint64_t teams = 0;
  for (int place = 0; place < redundant::most_replicas; ++place, numbers >>= team_bits)
    teams |= redundant::team_bit(int(numbers & (redundant::most_teams - 1)));
  return teams;
}

// In the leader, when all have their bytes: how the next one is read. A small one says nothing.
bool next_is_shared(const Reading& reading, uint64_t bytes, bool counts) {
  if (!reading.paces || bytes < least_shared) return reading.shared;
  if (counts) reading.paces->took(Work::read, reading.shared, bytes, meter_now_ns() - reading.began_ns);
  return reading.paces->shares(Work::read, bytes);
}

uint64_t view_of(const Common& file, ByteView bytes, const Had& had) {
  if (!had.has) return ~uint64_t(file.replica.place().team);  // nobody else says this
  return had.status.ok() ? coding::plain_checksum(bytes, had.count) : uint64_t(had.status.to_errno());
}

// A team that is started again reads at another time: what others may have changed by then is kept, or found to be another. Of a read that asks for more
// than there is these are the bytes that it got, `count` of them.
void keep_or_compare(const Common& file, std::span<const Extent> extents, ByteSpan into, Had had, uint64_t count) {
  const bool is_small = count <= least_shared;
  const auto then = file.replica.claimed_then(file.subject);
  if (!then) {
    if (is_small) file.replica.keep_read(file.subject, into.first(count));
    return;
  }
  if (!had.has && file.reading.reads_itself) had = Had::of(file.below.read(extents, into));  // nobody has sent it this time
  if (had.has && view_of(file, into, had) == then->view) return;
  const auto bytes = is_small ? file.replica.read_then(file.subject) : std::nullopt;
  if (!bytes || bytes->size() != count)
    file.replica.cannot_catch_up(file.name + " has been changed since it was read, and what was read is not kept");
  std::copy(bytes->begin(), bytes->end(), into.begin());
}

}  // namespace

Outcome end_read(const Common& file, std::span<const Extent> extents, ByteSpan into, Had had) {
  const redundant::Claim claim{.call = uint64_t(Call::read),
                               .at = extents.empty() ? 0 : extents[0].offset,
                               .bytes = into.size(),
                               .sum = sum_of(extents),
                               .view = view_of(file, into, had),
                               .looks = 1};
  auto* const sharing = redundant::Sharing::of(file.replica);
  Outcome outcome = file.meet(claim, "a read", [&](const redundant::Turn& turn) {
    const bool read_anew = !had.has || turn.again || file.has_repeated;  // what was kept has been written since
    if (read_anew) had = Had::of(file.below.read(extents, into));
    const bool shared = next_is_shared(file.reading, into.size(), had.status.ok() && !read_anew);
    Outcome made{had.status, had.count | (shared ? shared_bit : 0) | (sharing ? packed(sharing->living().teams) << teams_at : 0)};
    if (had.status.ok() && (read_anew || !turn.same_view) && !file.replica.is_alone()) made.payload.assign(into.begin(), into.end());
    return made;
  });
  if (file.replica.is_kept() && outcome.payload.empty() && outcome.status.ok())
    keep_or_compare(file, extents, into, had, std::min<uint64_t>(outcome.value & count_mask, into.size()));
  if (!outcome.payload.empty() && outcome.payload.size() == into.size()) std::memcpy(into.data(), outcome.payload.data(), into.size());
  file.reading.readers = unpacked(outcome.value >> teams_at);
  file.reading.shared = outcome.value & shared_bit;
  outcome.value &= count_mask;
  return outcome;
}

}  // namespace holdfast::file
