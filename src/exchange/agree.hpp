// One outcome for all ranks.
#pragma once
#include "base/status.hpp"
#include "exchange/exchange.hpp"

namespace holdfast::exchange {

// Collective: the first rank's that failed, with its sentence; ok where none did.
Status agree(Exchange& ranks, const Status& mine);

}  // namespace holdfast::exchange
