// What every generated entry does around a call of the front end.
#pragma once
#include <exception>

#include "intercept/mpi/depth.hpp"
#include "intercept/mpi/real.hpp"
#include "real_mpi.h"

#define HF_EXPORT __attribute__((visibility("default")))

namespace holdfast::intercept {

// True inside our own code: the call belongs to the MPI.
inline bool passes() {
  if (depth > 0) return true;
  need_real_mpi();
  return false;
}

// One line on stderr, and the code that the program gets.
int report_exception(const char* call, const char* what);

// Nothing may be thrown into the program, which may be C or Fortran.
template <class Call>
int unguarded(const char* name, Call call) {
  try {
    return call();
  } catch (const std::exception& error) {
    return report_exception(name, error.what());
  } catch (...) {
    return report_exception(name, "unknown exception");
  }
}

template <class Call>
int guarded(const char* name, Call call) {
  OurCode inside;
  return unguarded(name, call);
}

}  // namespace holdfast::intercept
