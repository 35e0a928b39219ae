// MPI_File_close and MPI_File_delete.
#include "catalog/catalog.hpp"
#include "frontend/mpi/file.hpp"
#include "frontend/mpi/job_log.hpp"
#include "frontend/mpi/native.hpp"
#include "frontend/mpi/requests.hpp"
#include "owned_mpi.h"
#include "profile/record.hpp"

namespace holdfast::frontend {

Fault close_file(const FilePtr& file) {
  drain(*file);
  Fault records;
  if (file->shared.records) records = file->shared.records->at_close(*file);
  Fault fault = told_once(*file, file->stack->close());
  file->stack.reset();
  if (fault.ok()) fault = records;
  if (file->shared.records) {
    records = file->shared.records->after_close();
    if (fault.ok()) fault = records;
  }
  if (file->amode & MPI_MODE_DELETE_ON_CLOSE) {
    Fault removed;
    if (file->exchange->rank() == 0) removed = catalog::remove(file->path, file->settings);
    removed = agree(*file->exchange, removed);
    if (fault.ok()) fault = removed;
  }
  report(*file, fault);  // while there is still a handle that has an error handler
  if (profile::opening_record) profile::describe_pointer(*profile::opening_record, file->shared.serving());
  if (file->exchange->rank() == 0) log_shared_pointer(file->path, file->exchange->size(), file->settings, file->shared);
  file->release_pointer();
  file->view = View();
  file->exchange.reset();
  forget_file(file->carrier);
  real.File_close(&file->carrier);
  return fault;
}

}  // namespace holdfast::frontend

using namespace holdfast;
using namespace holdfast::frontend;

int hf_File_close(MPI_File* fh) {
  if (NativeFile* native = find_native(*fh)) return native_close(native, fh);
  FilePtr file = find_file(*fh);
  if (!file) return report(Fault(MPI_ERR_FILE));
  if (file->split != Split::none) {
    return report(*file, Fault(MPI_ERR_IO, "a split collective operation is under way; end it before closing the file"));
  }
  const Fault fault = close_file(file);
  *fh = MPI_FILE_NULL;
  return fault.code;
}

int hf_File_delete(const char* filename, MPI_Info info) {
  if (filename == nullptr || !process_settings()) return next_mpi.File_delete(filename, info);
  Settings settings = *process_settings();
  const std::string path = absolute_path(filename);
  if (catalog::kind_of(path) != catalog::PathKind::protected_file) return next_mpi.File_delete(filename, info);
  Status status = apply_hints(info, settings);
  if (status.ok()) status = catalog::remove(path, settings);
  Fault fault(status);
  if (!fault.sentence.empty() && fault.sentence.find(path) == std::string::npos) fault.sentence = path + ": " + fault.sentence;
  return report(fault);
}
