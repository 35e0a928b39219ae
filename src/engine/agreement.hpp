// How the ranks of one open file agree: on losses, on outcomes, on the manifest.
#pragma once
#include <span>

#include "base/status.hpp"
#include "engine/members.hpp"
#include "exchange/exchange.hpp"
#include "layout/manifest.hpp"

namespace holdfast::engine {

// All ranks' losses together: how many members, and how many of them are lost for good on some rank.
struct Losses {
  int all = 0, for_good = 0;
  // More than can be missed, and not for good: late members that come back would make them bearable.
  bool contested(int may_miss) const { return all > may_miss && for_good <= may_miss; }
};
// From Members::losses(), the most of all ranks.
Losses count_losses(std::span<const int64_t> by_member);

// Collective. Losses become the union over the ranks; the outcome is the first rank's that failed. Where they are contested, those that are
// only late stay what they are on each rank, and Members::contested says so on all.
Status agree(exchange::Exchange& ranks, Members& members, const Status& mine);
// Collective. Rank 0's manifest (or why there is none) reaches all.
Result<layout::Manifest> share_manifest(exchange::Exchange& ranks, const Result<layout::Manifest>& mine);

}  // namespace holdfast::engine
