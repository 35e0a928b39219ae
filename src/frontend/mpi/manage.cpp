// What concerns the file as a whole: size, durability, atomicity, access mode and group.
#include "frontend/mpi/file.hpp"
#include "frontend/mpi/requests.hpp"
#include "owned_mpi.h"

namespace holdfast::frontend {

namespace {

// Sizes are collective arguments: the same on all ranks.
Fault check_size(ProtectedMpiFile& file, MPI_Offset size) {
  Fault fault;
  if (!file.writes()) fault = Fault(MPI_ERR_READ_ONLY);
  if (file.split != Split::none) fault = split_under_way("this call");
  if (size < 0) fault = Fault(MPI_ERR_ARG);
  const std::vector<int64_t> most = file.exchange->all_max({fault.code, size, -size});
  if (most[0] != MPI_SUCCESS) return fault.ok() ? Fault(static_cast<int>(most[0])) : fault;
  if (most[1] != -most[2]) return Fault(MPI_ERR_NOT_SAME);
  return Fault();
}

}  // namespace

Fault ProtectedMpiFile::take_atomicity(int flag) {
  drain(*this);
  HF_FAULT(before_call(true));
  const std::vector<int64_t> most = exchange->all_max({flag != 0, flag == 0});
  if (most[0] != 0 && most[1] != 0) return Fault(MPI_ERR_NOT_SAME);
  HF_FAULT(told_once(*this, stack->set_atomic(flag != 0)));
  atomic = flag != 0;
  return Fault();
}

int ProtectedMpiFile::set_atomicity(int flag) { return report(*this, take_atomicity(flag)); }

}  // namespace holdfast::frontend

using namespace holdfast::frontend;

int hf_File_set_size(MPI_File fh, MPI_Offset size) {
  return with_file(fh, [&](ProtectedMpiFile& file) {
    drain(file);
    HF_FAULT(file.before_call(true));
    if (file.sequential()) return Fault(MPI_ERR_UNSUPPORTED_OPERATION);
    HF_FAULT(check_size(file, size));
    return told_once(file, file.stack->set_size(static_cast<uint64_t>(size)));
  });
}

// Space on targets is not reserved: a full target counts as lost for the rows it cannot take, and others bear it.
int hf_File_preallocate(MPI_File fh, MPI_Offset size) {
  return with_file(fh, [&](ProtectedMpiFile& file) {
    drain(file);
    HF_FAULT(file.before_call(true));
    if (file.sequential()) return Fault(MPI_ERR_UNSUPPORTED_OPERATION);
    HF_FAULT(check_size(file, size));
    return told_once(file, file.stack->lengthen(static_cast<uint64_t>(size)));
  });
}

int hf_File_get_size(MPI_File fh, MPI_Offset* size) {
  return with_file(fh, [&](ProtectedMpiFile& file) {
    drain(file);
    HF_FAULT(file.before_call(false));
    const auto end = file.stack->size();
    if (end) *size = static_cast<MPI_Offset>(*end);
    return Fault(end.status());
  });
}

int hf_File_sync(MPI_File fh) {
  return with_file(fh, [&](ProtectedMpiFile& file) {
    drain(file);
    if (file.split != Split::none) return split_under_way("this call");
    if (file.shared.records) HF_FAULT(file.shared.records->at_sync(file));
    const Fault fault = told_once(file, file.stack->sync());
    if (fault.ok() && !(file.shared.records && file.settings.merge_later)) file.written_through_pointer = false;
    return fault;
  });
}

int hf_File_get_atomicity(MPI_File fh, int* flag) {
  return with_file(fh, [&](ProtectedMpiFile& file) {
    *flag = file.atomic;
    return Fault();
  });
}

int hf_File_get_group(MPI_File fh, MPI_Group* group) {
  return with_file(fh, [&](ProtectedMpiFile& file) {
    // A copy of its own for the program, which frees it.
    return Fault(real.Group_union(file.group, MPI_GROUP_EMPTY, group));
  });
}
