// File pointers, views and offsets of protected files.
#include <cstring>

#include "frontend/mpi/access.hpp"
#include "frontend/mpi/flatten.hpp"
#include "frontend/mpi/requests.hpp"
#include "owned_mpi.h"

namespace holdfast::frontend {

namespace {

// Where a seek goes, in etypes. `end` is called only where it matters.
template <class End>
Fault seek_target(const View& view, MPI_Offset offset, int whence, int64_t here, End end, int64_t& target) {
  int64_t from = 0;
  switch (whence) {
    case MPI_SEEK_SET: break;
    case MPI_SEEK_CUR: from = here; break;
    case MPI_SEEK_END: from = end(); break;
    default: return Fault(MPI_ERR_ARG);
  }
  if (__builtin_add_overflow(from, offset, &target)) return Fault(MPI_ERR_ARG);
  return view.reaches(target) ? Fault() : Fault(MPI_ERR_ARG);
}

// All ranks must have given the same; numbers that differ are a mistake of the program.
Fault same_everywhere(ProtectedMpiFile& file, std::vector<int64_t> numbers) {
  const size_t count = numbers.size();
  for (size_t i = 0; i < count; ++i) numbers.push_back(-numbers[i]);
  const std::vector<int64_t> most = file.exchange->all_max(numbers);
  for (size_t i = 0; i < count; ++i) {
    if (most[i] != -most[count + i]) return Fault(MPI_ERR_NOT_SAME);
  }
  return Fault();
}

// Everybody has come here, and leaves when rank 0 has moved the pointer.
Fault move_pointer(ProtectedMpiFile& file, int64_t to) {
  Fault fault;
  if (file.exchange->rank() == 0 && !file.shared.pointer->store(to)) fault = file.lost_pointer();
  return agree(*file.exchange, fault);
}

// Where the shared pointer stands once all ranks have come, in bytes of the file.
Fault current_displacement(ProtectedMpiFile& file, MPI_Offset& disp) {
  file.exchange->barrier();
  const int64_t at = file.shared.pointer->load();
  HF_FAULT(agree(*file.exchange, at < 0 ? file.lost_pointer() : Fault()));
  disp = static_cast<MPI_Offset>(file.view.byte_offset(static_cast<uint64_t>(at) * file.view.etype_bytes));
  return Fault();
}

}  // namespace

Fault ProtectedMpiFile::take_view(MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, MPI_Info info) {
  drain(*this);
  HF_FAULT(before_call(true));
  HF_FAULT(show_written());
  if (disp == MPI_DISPLACEMENT_CURRENT && sequential()) HF_FAULT(current_displacement(*this, disp));
  View given;
  Fault fault = make_view(disp, etype, filetype, datarep, writes(), given);
  if (fault.ok()) fault = apply_hints(info, settings);
  HF_FAULT(agree(*exchange, fault));
  const auto print = static_cast<int64_t>(given.fingerprint() >> 1);
  const std::vector<int64_t> most =
      exchange->all_max({int64_t(given.etype_bytes), -int64_t(given.etype_bytes), given.external, !given.external, print, -print});
  if (most[0] != -most[1] || most[2] == most[3]) return Fault(MPI_ERR_NOT_SAME);
  views_differ = most[4] != -most[5];
  {
    std::lock_guard lock(mutex);
    std::swap(view, given);
    position = 0;
  }
  // Only a call on the shared pointer says that there is none any more.
  (void)move_pointer(*this, 0);
  return Fault();
}

int ProtectedMpiFile::set_view(MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, MPI_Info info) {
  return report(*this, take_view(disp, etype, filetype, datarep, info));
}

Fault ProtectedMpiFile::seek_together(MPI_Offset offset, int whence) {
  if (sequential()) return Fault(MPI_ERR_UNSUPPORTED_OPERATION);
  if (views_differ) return different_views(rank == 0);
  if (split != Split::none) return split_under_way("this call");
  drain(*this);
  HF_FAULT(before_call(true));
  HF_FAULT(show_written());
  const auto size = stack->agreed_size();  // everybody has arrived: the pointer stands still
  HF_FAULT(told_once(*this, size.status()));
  const int64_t here = shared.pointer->load();
  const auto end = [&] { return view.etypes_before(*size); };
  int64_t target = 0;
  const Fault fault = here < 0 ? lost_pointer() : seek_target(view, offset, whence, here, end, target);
  HF_FAULT(agree(*exchange, fault));
  HF_FAULT(same_everywhere(*this, {offset, whence}));
  return move_pointer(*this, target);
}

int ProtectedMpiFile::seek_shared(MPI_Offset offset, int whence) { return report(*this, seek_together(offset, whence)); }

}  // namespace holdfast::frontend

using namespace holdfast::frontend;

int hf_File_get_view(MPI_File fh, MPI_Offset* disp, MPI_Datatype* etype, MPI_Datatype* filetype, char* datarep) {
  return with_file(fh, [&](ProtectedMpiFile& file) {
    std::lock_guard lock(file.mutex);
    *disp = file.view.disp;
    *etype = KeptType::duplicate(file.view.etype.get());
    *filetype = KeptType::duplicate(file.view.filetype.get());
    std::strcpy(datarep, file.view.datarep.c_str());
    return Fault();
  });
}

int hf_File_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset* disp) {
  return with_file(fh, [&](ProtectedMpiFile& file) {
    if (file.sequential()) return Fault(MPI_ERR_UNSUPPORTED_OPERATION);
    std::lock_guard lock(file.mutex);
    if (!file.view.reaches(offset)) return Fault(MPI_ERR_ARG);
    *disp = static_cast<MPI_Offset>(file.view.byte_offset(static_cast<uint64_t>(offset) * file.view.etype_bytes));
    return Fault();
  });
}

int hf_File_seek(MPI_File fh, MPI_Offset offset, int whence) {
  return with_file(fh, [&](ProtectedMpiFile& file) {
    if (file.sequential()) return Fault(MPI_ERR_UNSUPPORTED_OPERATION);
    drain(file);
    HF_FAULT(file.before_call(false));
    auto size = whence == MPI_SEEK_END ? file.stack->size() : holdfast::Result<uint64_t>(0);
    HF_FAULT(size.status());
    std::lock_guard lock(file.mutex);
    int64_t target = 0;
    HF_FAULT(seek_target(
        file.view, offset, whence, file.position, [&] { return file.view.etypes_before(*size); }, target));
    file.position = target;
    return Fault();
  });
}

int hf_File_get_position(MPI_File fh, MPI_Offset* offset) {
  return with_file(fh, [&](ProtectedMpiFile& file) {
    if (file.sequential()) return Fault(MPI_ERR_UNSUPPORTED_OPERATION);
    std::lock_guard lock(file.mutex);
    *offset = file.position;
    return Fault();
  });
}

int hf_File_get_type_extent(MPI_File fh, MPI_Datatype datatype, MPI_Count* extent) {
  return with_file(fh, [&](ProtectedMpiFile& file) {
    auto map = flatten(datatype, file.view.external ? Flavour::external : Flavour::bytes);
    if (!map) return Fault(MPI_ERR_TYPE);
    *extent = (*map)->extent();
    return Fault();
  });
}
