// Which code calls: the program (with the libraries that it brings), or MPI and what MPI brings.
#pragma once
#include <string>

namespace holdfast::frontend::posix {

// Whether code at this address is the program's. Objects are looked at when they are first met, which takes the loader's lock; of this library's own
// code it is known without.
bool is_of_the_program(const void* caller);
// MPI's, and what MPI brings.
bool is_of_mpi(const void* caller);

// Code of one object: of the program, or of a library.
bool are_of_one_object(const void* caller, const void* other);

// The code that has called the C++ library, where `caller`, which has called this thread's door, is in there; else `caller`.
const void* beyond_cxx_library(const void* caller);

// Of an object by the path that it was loaded from. What MPI is linked with is known by name, what it loads later by where it lies.
bool is_part_of_mpi(const std::string& path);

}  // namespace holdfast::frontend::posix
