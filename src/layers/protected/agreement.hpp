// How the ranks of one open file agree: on losses, on outcomes, on the manifest.
#pragma once
#include "base/status.hpp"
#include "exchange/exchange.hpp"
#include "layers/protected/members.hpp"
#include "layout/manifest.hpp"

namespace holdfast::layers {

// Collective. Losses become the union over the ranks; the outcome is the first rank's that failed.
Status agree(exchange::Exchange& ranks, Members& members, const Status& mine);
// Collective. Rank 0's manifest (or why there is none) reaches all.
Result<layout::Manifest> share_manifest(exchange::Exchange& ranks, const Result<layout::Manifest>& mine);

}  // namespace holdfast::layers
