// A program that uses MPI under a library that was not made for its MPI (started through a script, say). Its plain calls are served, and
// nobody sees its MPI-IO. Rank 0 says so.
#include <dlfcn.h>

#include "base/config.hpp"
#include "catalog/user_files.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "intercept/posix/settings.hpp"

namespace {

using namespace holdfast::intercept::posix;

// The library that the program would take MPI-IO from; empty where it uses none, or where that is ours.
std::string foreign_mpi() {
  void* const open = dlsym(RTLD_DEFAULT, "MPI_File_open");
  Dl_info theirs{}, ours{};
  if (!open || !dladdr(open, &theirs) || !dladdr(reinterpret_cast<void*>(&foreign_mpi), &ours)) return "";
  return theirs.dli_fbase == ours.dli_fbase || !theirs.dli_fname ? "" : theirs.dli_fname;
}

// After standard error may have been gathered.
__attribute__((constructor(104))) void mpi_beside_at_load() {
  const OurCode ours_now;
  const std::string mpi = foreign_mpi();
  if (mpi.empty() || !settings().protects()) return;
  const std::string rank = holdfast::rank_of_environment();
  if (!rank.empty() && rank != "0") return;
  complain(mpi,
           "the program uses this MPI-IO, which the preloaded library does not know; name the library that does: "
           "holdfast run --library NAME (openmpi4, mpich4 ...)");
}

}  // namespace
