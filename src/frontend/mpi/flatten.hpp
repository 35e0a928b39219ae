// From an MPI datatype to a Typemap, by its envelope and contents; what was made once is kept with the datatype.
#pragma once
#include <cstdint>
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

// How many that were laid flat have gone: what was remembered by a handle may be another's then.
uint64_t datatypes_gone();

// Whether the datatype is predefined (those must not be freed).
bool is_predefined(MPI_Datatype type);

}  // namespace holdfast::frontend
