#include "frontend/mpi/mpi_file.hpp"

#include <algorithm>
#include <mutex>

#include "frontend/mpi/own_code.hpp"
#include "frontend/mpi/shared_checkpoint.hpp"
#include "owned_mpi.h"

namespace holdfast::frontend {

// ---------------------------------------------------------------- the table

namespace {

constexpr size_t kPlaces = 1 << 16;
struct Place {
  std::atomic<MPI_File> handle{nullptr};  // stays when the file goes, so that longer searches go on past it
  std::atomic<MpiFile*> file{nullptr};
};
Place places[kPlaces];
std::mutex places_mutex;  // over changes
std::atomic<int> open_count{0}, protected_count{0};
uint64_t opened = 0;

// Never destroyed: programs may close files from exit handlers.
std::vector<std::shared_ptr<MpiFile>>& owned() {
  static auto* files = new std::vector<std::shared_ptr<MpiFile>>;
  return *files;
}

size_t first_place(MPI_File fh) {
  const auto bits = reinterpret_cast<uintptr_t>(fh);
  return static_cast<size_t>((bits >> 4) * 0x9e3779b97f4a7c15ull >> 40) % kPlaces;
}

// The one that stands for this handle, or, where none does, one that no file has.
Place* place_for(MPI_File fh, bool to_fill) {
  Place* free = nullptr;
  for (size_t i = first_place(fh), tried = 0; tried < kPlaces; i = (i + 1) % kPlaces, ++tried) {
    const MPI_File there = places[i].handle.load(std::memory_order_acquire);
    if (there == fh) return &places[i];
    if (to_fill && !free && places[i].file.load(std::memory_order_relaxed) == nullptr) free = &places[i];
    if (there == nullptr) break;
  }
  return free;
}

}  // namespace

MpiFile* find_any(MPI_File fh) {
  if (fh == nullptr || open_count.load(std::memory_order_relaxed) == 0) return nullptr;
  for (;;) {
    const Place* place = place_for(fh, false);
    MpiFile* const file = place ? place->file.load(std::memory_order_acquire) : nullptr;
    // Of a file that was closed: another thread may give its place to another handle at this moment.
    if (!file || place->handle.load(std::memory_order_acquire) == fh) return file;
  }
}

bool remember(const std::shared_ptr<MpiFile>& file) {
  std::lock_guard lock(places_mutex);
  Place* place = place_for(file->handle, true);  // MPI reuses handles
  if (!place) return false;
  place->handle.store(file->handle, std::memory_order_release);
  place->file.store(file.get(), std::memory_order_release);
  file->number = opened++;
  owned().push_back(file);
  open_count.fetch_add(1, std::memory_order_relaxed);
  if (file->is_protected()) protected_count.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void forget(MPI_File fh) {
  std::shared_ptr<MpiFile> gone;  // its end is a matter of all ranks, and not under this lock
  std::lock_guard lock(places_mutex);
  Place* place = place_for(fh, false);
  MpiFile* file = place ? place->file.exchange(nullptr) : nullptr;
  if (!file) return;
  open_count.fetch_sub(1, std::memory_order_relaxed);
  if (file->is_protected()) protected_count.fetch_sub(1, std::memory_order_relaxed);
  const auto found = std::find_if(owned().begin(), owned().end(), [&](const auto& one) { return one.get() == file; });
  gone = std::move(*found);
  owned().erase(found);
}

std::vector<std::shared_ptr<MpiFile>> open_files() {
  std::lock_guard lock(places_mutex);
  return owned();
}

// ---------------------------------------------------------------- one file

Fault MpiFile::before_call(bool together) {
  if (!shared.records) return Fault();
  return together ? shared.records->at_collective(*this) : shared.records->before_independent(*this);
}

Fault MpiFile::lost_pointer() const {
  const Fault fault = shared.pointer->failure();
  return fault.ok() ? Fault(MPI_ERR_IO) : fault;  // another rank knows why
}

int report(MpiFile& file, const Fault& fault) {
  if (fault.ok()) return MPI_SUCCESS;
  // Where it says nothing another rank knows why.
  const bool is_unread = !file.version_read.empty() && fault.code == MPI_ERR_IO && !fault.sentence.empty();
  if (is_unread && !file.unread.exchange(true)) SharedCheckpoint::could_not_read(file.version_read, fault.sentence);
  if (!fault.sentence.empty() && !file.complained.exchange(true)) {
    const bool named = fault.sentence.find(file.path) != std::string::npos;
    say(named ? fault.sentence : file.path + ": " + fault.sentence);
  }
  holdfast::frontend::ProgramCode program;
  real.File_call_errhandler(file.handle, fault.code);
  return fault.code;
}

Fault different_views(bool speak) {
  return Fault(MPI_ERR_NOT_SAME,
               speak ? "the processes have given different views, so they cannot share a file pointer; set one view on all of them first" : "");
}

Fault split_under_way(const char* what) { return Fault(MPI_ERR_IO, std::string("a split collective operation is under way; end it before ") + what); }

// ---------------------------------------------------------------- ordered access in two halves: _begin does all the work

namespace {

int begin_ordered(MPI_File fh, Direction direction, const void* buffer, MPI_Count count, MPI_Datatype type) {
  return with_any(fh, [&](MpiFile& file) {
    if (file.split != Split::none) return report(file, split_under_way("beginning another"));
    const int code = file.access_ordered(direction, const_cast<void*>(buffer), count, type, MPI_STATUS_IGNORE, file.split_bytes);
    if (code == MPI_SUCCESS) file.split = direction == Direction::write ? Split::write_ordered : Split::read_ordered;
    return code;
  });
}

int ordered(MPI_File fh, Direction direction, const void* buffer, MPI_Count count, MPI_Datatype type, MPI_Status* status) {
  return with_any(fh, [&](MpiFile& file) {
    if (file.split != Split::none) return report(file, split_under_way("this call"));
    uint64_t bytes = 0;
    return file.access_ordered(direction, const_cast<void*>(buffer), count, type, status, bytes);
  });
}

}  // namespace
}  // namespace holdfast::frontend

using namespace holdfast::frontend;

bool hf_is_ours(MPI_File fh) { return find_any(fh) != nullptr; }

bool hf_is_protected(MPI_File fh) {
  if (protected_count.load(std::memory_order_relaxed) == 0) return false;
  const MpiFile* file = find_any(fh);
  return file && file->is_protected();
}

int hf_File_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, MPI_Info info) {
  return with_any(fh, [&](MpiFile& file) { return file.set_view(disp, etype, filetype, datarep, info); });
}
int hf_File_set_atomicity(MPI_File fh, int flag) {
  return with_any(fh, [&](MpiFile& file) { return file.set_atomicity(flag); });
}
int hf_File_get_info(MPI_File fh, MPI_Info* info_used) {
  return with_any(fh, [&](MpiFile& file) { return file.get_info(info_used); });
}
int hf_File_get_amode(MPI_File fh, int* amode) {
  return with_any(fh, [&](MpiFile& file) -> int {
    *amode = file.amode;
    return MPI_SUCCESS;
  });
}
int hf_File_seek_shared(MPI_File fh, MPI_Offset offset, int whence) {
  return with_any(fh, [&](MpiFile& file) { return file.seek_shared(offset, whence); });
}
int hf_File_get_position_shared(MPI_File fh, MPI_Offset* offset) {
  return with_any(fh, [&](MpiFile& file) -> int {
    if (file.sequential()) return report(file, Fault(MPI_ERR_UNSUPPORTED_OPERATION));
    if (const Fault fault = file.before_call(false); !fault.ok()) return report(file, fault);
    const int64_t at = file.shared.pointer->load();
    if (at < 0) return report(file, file.lost_pointer());
    *offset = at;
    return MPI_SUCCESS;
  });
}
int hf_File_read_shared(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return with_any(fh, [&](MpiFile& file) { return file.access_shared(Direction::read, buf, count, datatype, status); });
}
int hf_File_write_shared(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return with_any(fh, [&](MpiFile& file) { return file.access_shared(Direction::write, const_cast<void*>(buf), count, datatype, status); });
}
int hf_File_iread_shared(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  return with_any(fh, [&](MpiFile& file) { return file.start_shared(Direction::read, buf, count, datatype, request); });
}
int hf_File_iwrite_shared(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  return with_any(fh, [&](MpiFile& file) { return file.start_shared(Direction::write, const_cast<void*>(buf), count, datatype, request); });
}
int hf_File_read_ordered(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return ordered(fh, Direction::read, buf, count, datatype, status);
}
int hf_File_write_ordered(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return ordered(fh, Direction::write, buf, count, datatype, status);
}
int hf_File_read_ordered_begin(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin_ordered(fh, Direction::read, buf, count, datatype);
}
int hf_File_read_ordered_end(MPI_File fh, void*, MPI_Status* status) { return end_split(fh, Split::read_ordered, status); }
int hf_File_write_ordered_begin(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin_ordered(fh, Direction::write, buf, count, datatype);
}
int hf_File_write_ordered_end(MPI_File fh, const void*, MPI_Status* status) { return end_split(fh, Split::write_ordered, status); }

int hf_File_close(MPI_File* fh) {
  return with_any(*fh, [&](MpiFile& file) {
    if (file.split != Split::none) return report(file, split_under_way("closing the file"));
    return file.close(fh);
  });
}
