// Read & Distribute: the leader reads and sends what it got.
#include <algorithm>
#include <cstring>

#include "file/coordinated/coordinated.hpp"

namespace holdfast::file {

Outcome read_and_distribute(const Common& file, std::span<const Extent> extents, ByteSpan into) {
  const redundant::Claim claim{.call = uint64_t(Call::read),
                               .at = extents.empty() ? 0 : extents[0].offset,
                               .bytes = into.size(),
                               .sum = sum_of(extents)};
  const Outcome outcome = file.meet(claim, "a read", [&](const redundant::Turn&) {
    const Result<uint64_t> got = file.below.read(extents, into);
    Outcome made{got.status(), got ? *got : 0, {}};
    if (got && !file.replica.is_alone()) made.payload.assign(into.begin(), into.end());
    return made;
  });
  if (!outcome.payload.empty() && outcome.payload.size() == into.size()) std::memcpy(into.data(), outcome.payload.data(), into.size());
  return outcome;
}

}  // namespace holdfast::file
