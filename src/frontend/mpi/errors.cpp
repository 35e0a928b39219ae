#include "frontend/mpi/errors.hpp"

#include <cerrno>
#include <cstdio>

#include "frontend/mpi/file.hpp"
#include "intercept/mpi/depth.hpp"

namespace holdfast::frontend {

Fault::Fault(const Status& status) : code(status.ok() ? MPI_SUCCESS : error_class(status)), sentence(status.sentence()) {}

int error_class(const Status& status) {
  switch (status.kind()) {
    case Kind::ok: return MPI_SUCCESS;
    case Kind::not_found: return MPI_ERR_NO_SUCH_FILE;
    case Kind::exists: return MPI_ERR_FILE_EXISTS;
    case Kind::access: return MPI_ERR_ACCESS;
    case Kind::no_space: return status.sys_errno() == EDQUOT ? MPI_ERR_QUOTA : MPI_ERR_NO_SPACE;
    case Kind::read_only: return MPI_ERR_READ_ONLY;
    case Kind::busy: return MPI_ERR_FILE_IN_USE;
    case Kind::invalid: return MPI_ERR_ARG;
    case Kind::unsupported: return MPI_ERR_UNSUPPORTED_OPERATION;
    default: return MPI_ERR_IO;
  }
}

void say(const std::string& sentence) { std::fprintf(stderr, "holdfast: %s\n", sentence.c_str()); }

namespace {
int raise(MPI_File fh, int code) {
  intercept::ProgramCode program;
  real.File_call_errhandler(fh, code);
  return code;
}
}  // namespace

int report(File& file, const Fault& fault) {
  if (fault.ok()) return MPI_SUCCESS;
  if (!fault.sentence.empty() && !file.complained.exchange(true)) say(file.path + ": " + fault.sentence);
  return raise(file.carrier, fault.code);
}

int report(const Fault& fault) {
  if (fault.ok()) return MPI_SUCCESS;
  if (!fault.sentence.empty()) say(fault.sentence);
  return raise(MPI_FILE_NULL, fault.code);
}

}  // namespace holdfast::frontend
