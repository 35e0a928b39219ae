// Simple Write: the leader writes what all replicas have agreed on.
#include "file/coordinated/coordinated.hpp"

namespace holdfast::file {

Outcome write_simply(const Common& file, std::span<const Extent> extents, ByteView data) {
  const redundant::Claim claim{.call = uint64_t(Call::write),
                               .at = extents.empty() ? 0 : extents[0].offset,
                               .bytes = data.size(),
                               .sum = sum_of(extents, data)};
  return file.meet(claim, "a write", [&](const redundant::Turn&) { return Outcome{file.below.write(extents, data)}; });
}

}  // namespace holdfast::file
