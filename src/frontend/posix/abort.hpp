// The MPI is about to end the job for the program, and all ranks with it, before any of them comes to an exit handler.
#pragma once
#include "base/status.hpp"

namespace holdfast::frontend::posix {

// What the program had written by plain calls would be in its files without us. The launcher says the code.
Status leaves_by_abort();

}  // namespace holdfast::frontend::posix
