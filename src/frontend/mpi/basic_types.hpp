// The predefined datatypes of this MPI: what their elements are.
#pragma once
#include <vector>

#include "frontend/typemap.hpp"
#include "real_mpi.h"

namespace holdfast::frontend {

// The elements of a predefined type, in order (two for MPI_DOUBLE_INT). Empty for types without data (MPI_LB).
struct BasicParts {
  std::vector<Run> runs;  // `disp`, `length` in memory
  int64_t extent = 0;     // in memory
};
BasicParts basic_parts(MPI_Datatype type);

}  // namespace holdfast::frontend
