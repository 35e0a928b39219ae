// Nonblocking access. The position is claimed in the call, so pointers are in program order; the data moves in the
// worker. A collective one is served rank by rank: ranks may call it at quite different times, so none waits for another.
#include "frontend/mpi/access.hpp"
#include "frontend/mpi/requests.hpp"
#include "owned_mpi.h"

namespace holdfast::frontend {

namespace {

int start_on(const FilePtr& file, const DataAccess& access, MPI_Request* request) {
  auto operation = std::make_shared<Operation>();
  operation->file = file;
  Fault fault = check_where(*file, access.where, access.offset);
  if (fault.ok()) {
    std::lock_guard lock(file->mutex);
    fault = Transfer::plan(*file, access.direction, access.data, operation->transfer);
  }
  if (fault.ok()) fault = file->before_call(false);
  if (access.direction == Direction::write && access.where == Where::shared) file->written_through_pointer = true;
  if (fault.ok()) {
    const int64_t at = claim_position(*file, access.where, access.offset, operation->transfer.etypes());
    operation->transfer.start_at(at);
    fault = at < 0 ? file->lost_pointer() : start_operation(operation, request);
  }
  return report(*file, fault);
}

int start(MPI_File fh, const DataAccess& access, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  const FilePtr file = find_file(fh);
  return file ? start_on(file, access, request) : report(Fault(MPI_ERR_FILE));
}

}  // namespace

int ProtectedMpiFile::start_shared(Direction direction, void* buffer, MPI_Count count, MPI_Datatype type, MPI_Request* request) {
  const FilePtr self = std::static_pointer_cast<ProtectedMpiFile>(shared_from_this());
  return start_on(self, {direction, Where::shared, independent, 0, {buffer, count, type}}, request);
}

}  // namespace holdfast::frontend

using namespace holdfast::frontend;

int hf_File_iread_at(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  return start(fh, {Direction::read, Where::offset, independent, offset, {buf, count, datatype}}, request);
}
int hf_File_iread_at_all(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  return start(fh, {Direction::read, Where::offset, independent, offset, {buf, count, datatype}}, request);
}
int hf_File_iwrite_at(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  return start(fh, {Direction::write, Where::offset, independent, offset, {buf, count, datatype}}, request);
}
int hf_File_iwrite_at_all(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  return start(fh, {Direction::write, Where::offset, independent, offset, {buf, count, datatype}}, request);
}
int hf_File_iread(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  return start(fh, {Direction::read, Where::individual, independent, 0, {buf, count, datatype}}, request);
}
int hf_File_iread_all(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  return start(fh, {Direction::read, Where::individual, independent, 0, {buf, count, datatype}}, request);
}
int hf_File_iwrite(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  return start(fh, {Direction::write, Where::individual, independent, 0, {buf, count, datatype}}, request);
}
int hf_File_iwrite_all(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  return start(fh, {Direction::write, Where::individual, independent, 0, {buf, count, datatype}}, request);
}
