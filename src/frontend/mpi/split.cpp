// Split collectives: _begin does the work, _end hands out what came of it. (MPI allows an implementation to do all in
// either; the buffer is not touched in between.)
#include "frontend/mpi/access.hpp"
#include "owned_mpi.h"

namespace holdfast::frontend {

namespace {

int begin(MPI_File fh, Split kind, const DataAccess& access) {
  return with_file(fh, [&](ProtectedMpiFile& file) {
    if (file.split != Split::none) return split_under_way("beginning another");
    const Fault fault = move_data(file, access, file.split_bytes);
    if (fault.ok()) file.split = kind;  // one that fails has not begun
    return fault;
  });
}

}  // namespace

int end_split(MPI_File fh, Split kind, MPI_Status* status) {
  return with_any(fh, [&](MpiFile& file) -> int {
    if (file.split != kind) return report(file, Fault(MPI_ERR_IO, "the end of a split collective operation does not match a begin of the same kind"));
    file.split = Split::none;
    set_status(status, file.split_bytes);
    return MPI_SUCCESS;
  });
}

}  // namespace holdfast::frontend

using namespace holdfast::frontend;

int hf_File_read_at_all_begin(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(fh, Split::read_at_all, {Direction::read, Where::offset, together, offset, {buf, count, datatype}});
}
int hf_File_read_at_all_end(MPI_File fh, void*, MPI_Status* status) { return end_split(fh, Split::read_at_all, status); }
int hf_File_write_at_all_begin(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(fh, Split::write_at_all, {Direction::write, Where::offset, together, offset, {buf, count, datatype}});
}
int hf_File_write_at_all_end(MPI_File fh, const void*, MPI_Status* status) { return end_split(fh, Split::write_at_all, status); }
int hf_File_read_all_begin(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(fh, Split::read_all, {Direction::read, Where::individual, together, 0, {buf, count, datatype}});
}
int hf_File_read_all_end(MPI_File fh, void*, MPI_Status* status) { return end_split(fh, Split::read_all, status); }
int hf_File_write_all_begin(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(fh, Split::write_all, {Direction::write, Where::individual, together, 0, {buf, count, datatype}});
}
int hf_File_write_all_end(MPI_File fh, const void*, MPI_Status* status) { return end_split(fh, Split::write_all, status); }
