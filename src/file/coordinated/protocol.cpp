#include "file/coordinated/protocol.hpp"

#include <fmt/format.h>

#include "coding/checksum.hpp"

namespace holdfast::file {

Outcome Common::meet(const redundant::Claim& claim, const char* call, const std::function<Outcome(const redundant::Turn&)>& act) const {
  const auto what = [&] { return fmt::format("{}, {} of {} bytes at {}", name, call, claim.bytes, claim.at); };
  bool acted = false;
  Outcome outcome = unpack(replica.meet(subject, claim, what, [&](const redundant::Turn& turn) {
    acted = true;
    const Status ready = take_over();
    return pack(ready.ok() ? act(turn) : Outcome{ready});
  }));
  outcome.is_own = acted;
  return outcome;
}

uint64_t sum_of(std::span<const Extent> extents, ByteView data) {
  coding::RunningChecksum sum(0);
  sum.add(std::as_bytes(extents));
  sum.add(data);
  return sum.value();
}

}  // namespace holdfast::file
