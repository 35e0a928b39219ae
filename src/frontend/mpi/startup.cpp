// The beginning and the end of MPI: files that a program leaves open are closed before MPI goes.
#include "base/ending.hpp"
#include "base/in_mpi.hpp"
#include "frontend/mpi/file.hpp"
#include "frontend/mpi/own_code.hpp"
#include "frontend/posix/abort.hpp"
#include "frontend/posix/taking_part.hpp"
#include "owned_mpi.h"
#include "profile/record.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::frontend {

namespace {

void close_what_is_open() {
  holdfast::frontend::OurCode inside;
  bool any_of_mpi = false;
  for (const std::shared_ptr<MpiFile>& file : open_files()) {
    any_of_mpi |= !file->is_protected();
    if (!file->is_protected()) continue;
    say(file->path + ": left open at MPI_Finalize; closed now, but a program should close its files itself");
    (void)std::static_pointer_cast<ProtectedMpiFile>(file)->close_whole();
  }
  // Those of the MPI are the MPI's to complain about; only what the shared pointers hold goes first.
  if (!any_of_mpi) PointerGroup::free_all();
}

int copy_nothing(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

int at_the_end(MPI_Comm, int, void*, void*) {
  close_what_is_open();
  return MPI_SUCCESS;
}

// MPI_Finalize begins with what is attached to MPI_COMM_SELF, the last attached first. Libraries such as HDF5 close their
// files there. Ours is the first to be attached, so what is open when its turn comes is really left open.
int watch_the_end(int code) {
  watch_ending();
  if (code != MPI_SUCCESS) return code;
  holdfast::frontend::OurCode inside;
  if (profile::on()) {
    int rank = 0, ranks = 1;
    real.Comm_rank(MPI_COMM_WORLD, &rank);
    real.Comm_size(MPI_COMM_WORLD, &ranks);
    profile::set_rank(rank, ranks);
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    if (real.Get_library_version(version, &length) == MPI_SUCCESS) profile::set_mpi(version);
  }
  int key = MPI_KEYVAL_INVALID;
  if (real.Comm_create_keyval(copy_nothing, at_the_end, &key, nullptr) != MPI_SUCCESS) return code;
  real.Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  real.Comm_free_keyval(&key);
  return code;
}

// What an MPI keeps in files for itself, from its beginning to its end, is not the program's use of files.
template <class Call>
int by_mpi_itself(Call call) {
  static Meter nobodys;
  const MeterScope scope(profile::on() ? &nobodys : current_meter);
  return call();
}

}  // namespace
}  // namespace holdfast::frontend

using namespace holdfast::frontend;

int hf_Init(int* argc, char*** argv) {
  posix::take_part();
  return watch_the_end(by_mpi_itself([=] { return next_mpi.Init(argc, argv); }));
}

int hf_Init_thread(int* argc, char*** argv, int required, int* provided) {
  posix::take_part();
  return watch_the_end(by_mpi_itself([=] { return next_mpi.Init_thread(argc, argv, required, provided); }));
}

int hf_Finalize() {
  if (auto* const replica = holdfast::redundant::Replica::now()) replica->compare_at_the_end();
  const int code = by_mpi_itself([] { return next_mpi.Finalize(); });
  holdfast::profile::process_ends();
  return code;
}

int hf_Abort(MPI_Comm comm, int errorcode) {
  {
    holdfast::frontend::OurCode inside;
    if (const holdfast::Status written = posix::leaves_by_abort(); !written.ok()) say(written.sentence());
  }
  return next_mpi.Abort(comm, errorcode);
}

#if HF_HAS_Session_init
int hf_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  holdfast::sessions_have_begun = true;
  holdfast::one_thread_at_a_time = false;
  posix::take_part();
  return next_mpi.Session_init(info, errhandler, session);
}

int hf_Session_finalize(MPI_Session* session) { return next_mpi.Session_finalize(session); }
#endif
