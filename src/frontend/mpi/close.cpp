// MPI_File_close and MPI_File_delete.
#include "base/raw_syscalls.hpp"
#include "catalog/catalog.hpp"
#include "file/coordinated/names.hpp"
#include "frontend/mpi/file.hpp"
#include "frontend/mpi/job_log.hpp"
#include "frontend/mpi/requests.hpp"
#include "owned_mpi.h"
#include "profile/record.hpp"

namespace holdfast::frontend {

namespace {

// By one replica for all.
Status remove_protected(const std::string& path, const Settings& settings) {
  auto* const replica = redundant::Replica::now();
  if (!replica) return catalog::remove(path, settings);
  const auto remove = [&](bool again) {
    const Status removed = catalog::remove(path, settings);
    return file::Outcome{again && removed.kind() == Kind::not_found ? Status() : removed};
  };
  return file::once(*replica, file::Call::unlink, path, "protected", remove).status;
}
Status remove_once(const std::string& path) {
  const auto unlink = [&] { return raw::unlinkat(AT_FDCWD, path.c_str(), 0); };
  if (file::once(*redundant::Replica::now(), file::Call::unlink, path, "", ENOENT, unlink) == 0) return Status();
  return Status::from_errno(errno, path);
}

}  // namespace

Fault ProtectedMpiFile::close_whole() {
  const auto stays = shared_from_this();
  drain(*this);
  Fault records;
  if (shared.records) records = shared.records->at_close(*this);
  Status closed = stack->close();
  const bool is_plain = protected_file == nullptr && catalog::kind_of(path) != catalog::PathKind::protected_file;
  protected_file = nullptr;
  stack.reset();
  if (checkpoint) closed = checkpoint->close(closed, (amode & MPI_MODE_DELETE_ON_CLOSE) != 0, *exchange);
  Fault fault = told_once(*this, closed);
  if (fault.ok()) fault = records;
  if (shared.records) {
    records = shared.records->after_close();
    if (fault.ok()) fault = records;
  }
  if ((amode & MPI_MODE_DELETE_ON_CLOSE) && !checkpoint) {
    Fault removed;
    if (rank == 0) removed = is_plain ? remove_once(path) : remove_protected(path, settings);
    removed = agree(*exchange, removed);
    if (fault.ok()) fault = removed;
  }
  report(*this, fault);  // while there is still a handle that has an error handler
  if (profile::opening_record) profile::describe_pointer(*profile::opening_record, shared.serving());
  if (rank == 0) log_shared_pointer(path, ranks, settings, shared);
  release_pointer();
  view = View();
  exchange.reset();
  forget(handle);
  real.File_close(&handle);
  return fault;
}

int ProtectedMpiFile::close(MPI_File* fh) {
  const Fault fault = close_whole();
  *fh = MPI_FILE_NULL;
  return fault.code;
}

}  // namespace holdfast::frontend

using namespace holdfast;
using namespace holdfast::frontend;

int hf_File_delete(const char* filename, MPI_Info info) {
  if (filename == nullptr || !process_settings()) return next_mpi.File_delete(filename, info);
  Settings settings = *process_settings();
  const std::string path = path_of_filename(filename);
  if (catalog::kind_of(path) != catalog::PathKind::protected_file) {
    if (!redundant::Replica::now()) return next_mpi.File_delete(filename, info);
    return report(Fault(remove_once(path)));
  }
  Status status = apply_hints(info, settings);
  if (status.ok()) status = remove_protected(path, settings);
  Fault fault(status);
  if (!fault.sentence.empty() && fault.sentence.find(path) == std::string::npos) fault.sentence = path + ": " + fault.sentence;
  return report(fault);
}
