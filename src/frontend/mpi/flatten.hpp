// From an MPI datatype to a Typemap, by its envelope and contents; what was made once is kept with the datatype.
#pragma once
#include <memory>

#include "base/status.hpp"
#include "frontend/typemap.hpp"
#include "real_mpi.h"

namespace holdfast::frontend {

enum class Flavour : uint8_t {
  bytes,     // memory's layout, elements joined: for moving bytes
  elements,  // memory's layout, every run of one kind of element: for conversion
  external,  // the layout in an external32 file, for filetypes: extents of basic types are the file's
};

// Kind::invalid for a datatype that is not one, Kind::unsupported for a constructor that this version does not know.
Result<std::shared_ptr<const Typemap>> flatten(MPI_Datatype type, Flavour flavour);

// Whether the datatype is predefined (those must not be freed).
bool is_predefined(MPI_Datatype type);

}  // namespace holdfast::frontend
