// The shared pointer in an MPI window: memory that all ranks share where they can, one-sided operations on rank 0's
// otherwise. (Where the MPI makes no progress on its own, the latter wait until rank 0 next calls MPI.)
#pragma once
#include <memory>

#include "frontend/shared_pointer/shared_pointer.hpp"
#include "real_mpi.h"

namespace holdfast::frontend {

std::unique_ptr<SharedPointer> make_window_pointer(MPI_Comm comm);  // collective

}  // namespace holdfast::frontend
