// Simple Read: every replica reads. Where they have seen different bytes, counts or failures, the leader's are everybody's.
#include <algorithm>
#include <cstring>

#include "coding/checksum.hpp"
#include "file/coordinated/coordinated.hpp"

namespace holdfast::file {

Outcome read_simply(const Common& file, std::span<const Extent> extents, ByteSpan into) {
  if (file.replica.leads()) (void)file.take_over();  // what fails is the outcome of the meeting
  const Result<uint64_t> own = file.below.read(extents, into);
  const uint64_t got = own ? *own : 0;
  redundant::Claim claim{.call = uint64_t(Call::read), .at = extents.empty() ? 0 : extents[0].offset, .bytes = into.size(), .sum = sum_of(extents)};
  claim.view = own ? coding::plain_checksum(into, got) : uint64_t(own.status().to_errno());
  const Outcome outcome = file.meet(claim, "a read", [&](const redundant::Turn& turn) {
    Result<uint64_t> mine = own;
    if (turn.again) mine = file.below.read(extents, into);  // what was kept has been written since
    Outcome made{mine.status(), mine ? *mine : 0, {}};
    if (mine && (!turn.same_view || turn.again)) made.payload.assign(into.begin(), into.end());
    return made;
  });
  if (!outcome.payload.empty() && outcome.payload.size() == into.size()) std::memcpy(into.data(), outcome.payload.data(), into.size());
  return outcome;
}

}  // namespace holdfast::file
