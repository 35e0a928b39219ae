#include "frontend/mpi/errors.hpp"

#include <cerrno>
#include <cstdio>

#include "frontend/mpi/own_code.hpp"

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
  holdfast::frontend::ProgramCode program;
  real.File_call_errhandler(fh, code);
  return code;
}
}  // namespace

void keep_inherited_handler(MPI_File fh) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  real.File_get_errhandler(fh, &handler);
  // Predefined handlers are not counted. The reference that we have just got is the one that the file drops at its end.
  if (handler == MPI_ERRORS_RETURN || handler == MPI_ERRORS_ARE_FATAL) real.Errhandler_free(&handler);
}

int report(const Fault& fault) {
  if (fault.ok()) return MPI_SUCCESS;
  if (!fault.sentence.empty()) say(fault.sentence);
  // Open MPI refuses to call the handler of MPI_FILE_NULL; a new file inherits it.
  MPI_File heir = MPI_FILE_NULL;
  if (real.File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &heir) != MPI_SUCCESS) return fault.code;
  keep_inherited_handler(heir);
  raise(heir, fault.code);
  if (heir != MPI_FILE_NULL) real.File_close(&heir);
  return fault.code;
}

}  // namespace holdfast::frontend
