// Exchange over an MPI communicator.
#pragma once
#include <memory>

#include "exchange/exchange.hpp"
#include "real_mpi.h"

namespace holdfast::exchange {

// No message and no collective part is larger: MPI counts with int, and a transport may buffer what it sends.
inline constexpr uint64_t kMessageBytes = 1ull << 30;

// Takes over `comm`, which must be used for nothing else (a duplicate made for this file), and frees it at the end.
// So making and destroying are collective too. Errors of the communicator end the job, as MPI's default is. Ranks
// that cannot talk can neither agree on a loss nor finish a collective call.
std::unique_ptr<Exchange> make_mpi(MPI_Comm comm, uint64_t message_bytes = kMessageBytes);

}  // namespace holdfast::exchange
