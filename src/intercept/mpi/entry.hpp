// What every generated entry does around a call of the front end.
#pragma once
#include <exception>
#include <type_traits>

#include "base/in_mpi.hpp"
#include "frontend/mpi/own_code.hpp"
#include "intercept/mpi/real.hpp"
#include "real_mpi.h"
#include "redundant/twins/replica.hpp"

#define HF_EXPORT __attribute__((visibility("default")))

namespace holdfast::intercept {

using frontend::depth;
using frontend::hooks;
using frontend::OurCode;
using frontend::ProgramCode;

// Does the table say of a call what mpi.h says? An argument that is wider there would be cut without a word. MPIs differ in what they
// declare const.
template <class T>
struct WithoutConst {
  using type = std::remove_cv_t<T>;
};
template <class T>
struct WithoutConst<T*> {
  using type = typename WithoutConst<std::remove_cv_t<T>>::type*;
};
template <class Result, class... Arguments>
struct WithoutConst<Result (*)(Arguments...)> {
  using type = Result (*)(typename WithoutConst<Arguments>::type...);
};
template <class Entry, class Mpi>
inline constexpr bool are_one_call = std::is_same_v<typename WithoutConst<Entry>::type, typename WithoutConst<Mpi>::type>;

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
int caught(const char* name, Call call) {
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
  return caught(name, call);
}

// One load where it is not.
inline bool is_replica() { return redundant::Replica::now() != nullptr; }

// MPI's start and end run code of the program (attribute callbacks close files in MPI_Finalize), so calls inside do
// arrive. Only the hook itself is not entered again, when a tool behind us hands it on to PMPI.
inline bool in_hook() { return hooks > 0; }

template <class Call>
int hooked(const char* name, Call call) {
  ++hooks;
  const int code = caught(name, call);
  --hooks;
  return code;
}

}  // namespace holdfast::intercept
