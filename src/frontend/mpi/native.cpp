#include "frontend/mpi/native.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "frontend/mpi/flatten.hpp"
#include "frontend/mpi/own_code.hpp"
#include "owned_mpi.h"

namespace holdfast::frontend {

// ---------------------------------------------------------------- one file

PlainMpiFile::~PlainMpiFile() {
  forget_view();
  shared.records.reset();
  shared.pointer.reset();
  if (own_comm) real.Comm_free(&comm);
  if (pointer_group) pointer_group->file_closed();
}

void PlainMpiFile::forget_view() {
  std::lock_guard lock(mutex_);
  delete view_.exchange(nullptr);
}

namespace {

void free_copy(MPI_Datatype type) {
  if (type != MPI_DATATYPE_NULL && !is_predefined(type)) real.Type_free(&type);
}

bool understand(MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, NativeView& view) {
  MPI_Count bytes = 0;
  if (real.Type_size_x(etype, &bytes) != MPI_SUCCESS || bytes < 0) return false;
  view.etype_bytes = bytes;
  if (!make_view(disp, etype, filetype, datarep, false, view.view).ok()) return true;  // a representation of the program's own
  const Typemap& map = *view.view.file;
  view.fingerprint = view.view.fingerprint();
  const bool plain = map.one_block() && map.contiguous(2) && std::strcmp(datarep, "native") == 0;
  if (plain && map.size() != 0) view.first_byte = disp + map.true_lb();
  return true;
}

}  // namespace

NativeView* PlainMpiFile::learn_view() {
  std::lock_guard lock(mutex_);
  if (NativeView* known = view_.load(std::memory_order_acquire)) return known;
  MPI_Offset disp = 0;
  MPI_Datatype etype = MPI_DATATYPE_NULL, filetype = MPI_DATATYPE_NULL;
  char datarep[MPI_MAX_DATAREP_STRING + 1] = "";
  if (real.File_get_view(handle, &disp, &etype, &filetype, datarep) != MPI_SUCCESS) return nullptr;
  auto learned = std::make_unique<NativeView>();
  const bool understood = understand(disp, etype, filetype, datarep, *learned);
  free_copy(etype);
  free_copy(filetype);
  if (!understood) return nullptr;
  if (!looked_for_descriptor_) descriptor = Descriptor::find(path, reads(), writes());
  looked_for_descriptor_ = true;
  int atomic = 0;
  real.File_get_atomicity(handle, &atomic);
  learned->loggable = learned->view.file && !learned->view.external && atomic == 0;
  learned->direct = learned->first_byte >= 0 && descriptor.usable() && atomic == 0;
  view_.store(learned.get(), std::memory_order_release);
  return learned.release();
}

int64_t PlainMpiFile::end_in_etypes() {
  NativeView* now = view();
  MPI_Offset size = 0;
  if (now == nullptr || real.File_get_size(handle, &size) != MPI_SUCCESS) return -1;
  if (now->view.file) return now->view.etypes_before(static_cast<uint64_t>(size));
  // MPI alone knows where the etypes lie: the first that does not begin before the end.
  int64_t low = 0, high = size + 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    MPI_Offset byte = 0;
    if (real.File_get_byte_offset(handle, middle, &byte) != MPI_SUCCESS) return -1;
    if (byte < size) low = middle + 1;
    else high = middle;
  }
  return low;
}

int64_t PlainMpiFile::bytes_from(int64_t etypes) {
  NativeView* now = view();
  if (now == nullptr) return -1;
  if (now->view.file && !now->view.external) {  // the end may lie within an etype
    MPI_Offset size = 0;
    if (real.File_get_size(handle, &size) != MPI_SUCCESS) return -1;
    const int64_t data = size <= now->view.disp ? 0 : static_cast<int64_t>(now->view.file->data_before(size - now->view.disp));
    return std::max<int64_t>(data - etypes * now->etype_bytes, 0);
  }
  const int64_t end = end_in_etypes();
  return end < 0 ? -1 : std::max<int64_t>(end - etypes, 0) * now->etype_bytes;
}

int64_t PlainMpiFile::etype_bytes() {
  NativeView* now = view();
  return now ? now->etype_bytes : 0;
}

bool PlainMpiFile::describe(layout::SessionView& into) {
  NativeView* now = view();
  return now != nullptr && now->loggable && describe_view(now->view, into);
}

Status PlainMpiFile::make_durable() {
  const int code = real.File_sync(handle);
  return code == MPI_SUCCESS ? Status() : Status(Kind::io, path + ": MPI could not make the file durable");
}

Status PlainMpiFile::place(int64_t etypes, ByteView packed) {
  NativeView* now = view();
  if (now && now->direct && descriptor.write(packed.data(), packed.size(), now->first_byte + etypes * now->etype_bytes)) return Status();
  constexpr size_t kAtOnce = 1 << 30;  // MPI counts with int
  for (size_t done = 0; done < packed.size();) {
    if (now == nullptr || now->etype_bytes == 0) return Status(Kind::io, path + ": the view has no data");
    const size_t bytes = std::min(packed.size() - done, kAtOnce - kAtOnce % static_cast<size_t>(now->etype_bytes));
    const int code = real.File_write_at(handle, etypes, packed.data() + done, static_cast<int>(bytes), MPI_BYTE, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return Status(Kind::io, path + ": a record could not be written");
    done += bytes;
    etypes += static_cast<int64_t>(bytes) / now->etype_bytes;
  }
  return Status();
}

// ---------------------------------------------------------------- faults

Agreed agree(PlainMpiFile& file, const Fault& mine, std::vector<int64_t> numbers) {
  Agreed agreed{mine, numbers};
  if (file.comm == MPI_COMM_NULL) return agreed;
  numbers.push_back(mine.code);
  numbers.push_back(mine.ok() ? INT64_MIN : -int64_t{file.rank});
  std::vector<int64_t> most(numbers.size());
  real.Allreduce(numbers.data(), most.data(), static_cast<int>(numbers.size()), MPI_INT64_T, MPI_MAX, file.comm);
  if (mine.ok()) agreed.fault = Fault(static_cast<int>(most[most.size() - 2]));
  else if (most.back() != -int64_t{file.rank}) agreed.fault.sentence.clear();  // one line on stderr is enough
  most.resize(most.size() - 2);
  agreed.most = std::move(most);
  return agreed;
}

}  // namespace holdfast::frontend

using namespace holdfast::frontend;

int hf_before_native(MPI_File fh, int kind) {
  MpiFile* file = find_any(fh);
  if (file == nullptr || file->is_protected()) return MPI_SUCCESS;
  if (file->sequential() && (kind == HF_ACCESS || kind == HF_ACCESS_ALL || kind == HF_POSITION)) {
    holdfast::frontend::OurCode inside;
    return report(*file, Fault(MPI_ERR_UNSUPPORTED_OPERATION));
  }
  if (!file->shared.records || kind == HF_POSITION) return MPI_SUCCESS;
  holdfast::frontend::OurCode inside;
  return report(*file, kind == HF_MANAGE_ALL ? Fault(file->shared.records->at_sync(*file)) : file->before_call(kind == HF_ACCESS_ALL));
}
