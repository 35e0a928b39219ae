// The beginning and the end of MPI: files that a program leaves open are closed before MPI goes.
#include "frontend/mpi/file.hpp"
#include "intercept/mpi/depth.hpp"
#include "owned_mpi.h"

namespace holdfast::frontend {

namespace {

void close_what_is_open() {
  intercept::OurCode inside;
  for (const FilePtr& file : open_files()) {
    say(file->path + ": left open at MPI_Finalize; closed now, but a program should close its files itself");
    (void)close_file(file);
  }
}

}  // namespace
}  // namespace holdfast::frontend

using namespace holdfast::frontend;

int hf_Init(int* argc, char*** argv) { return next_mpi.Init(argc, argv); }

int hf_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return next_mpi.Init_thread(argc, argv, required, provided);
}

int hf_Finalize() {
  close_what_is_open();
  return next_mpi.Finalize();
}

int hf_Abort(MPI_Comm comm, int errorcode) { return next_mpi.Abort(comm, errorcode); }

#if HF_HAS_Session_init
int hf_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  return next_mpi.Session_init(info, errhandler, session);
}

int hf_Session_finalize(MPI_Session* session) { return next_mpi.Session_finalize(session); }
#endif
