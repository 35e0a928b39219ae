// One outcome for all ranks.
#pragma once
#include "base/status.hpp"
#include "exchange/exchange.hpp"

namespace holdfast::exchange {

// A status as bytes (kind, errno, sentence; eight bytes where it is ok) and back, for a message to other ranks.
Bytes pack(const Status& status);
Status unpack(ByteView bytes);

// Collective, once it is known that some rank failed: the first such rank's status.
Status first_failure(Exchange& ranks, const Status& mine);
// Collective: the first rank's that failed, with its sentence; ok where none did.
Status agree(Exchange& ranks, const Status& mine);

}  // namespace holdfast::exchange
