#include "intercept/mpi/observe.hpp"

#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/raw_syscalls.hpp"
#include "frontend/mpi/file.hpp"
#include "frontend/mpi/own_code.hpp"
#include "owned_mpi.h"

namespace holdfast::intercept {

thread_local bool observing = false;

namespace {

using profile::Counter;
using profile::Record;

// An open file as far as places of accesses need it. Changed by calls of one file, which MPI wants in order anyway; read without a lock.
struct Handle {
  std::atomic<MPI_File> file{nullptr};
  std::atomic<Record*> record{nullptr};
  // The view: bytes of file for bytes of data. 0: no view that can be reckoned with.
  std::atomic<int64_t> disp{0}, etype_bytes{1}, tile_bytes{1}, tile_extent{1};
};

constexpr size_t most_handles = 512;
std::array<Handle, most_handles> handles;
std::mutex handles_mutex;  // over taking and giving back places

size_t first_place(MPI_File file) { return (reinterpret_cast<uintptr_t>(file) >> 4) % most_handles; }

Handle* find(MPI_File file) {
  if (file == nullptr || file == MPI_FILE_NULL) return nullptr;
  for (size_t i = 0, at = first_place(file); i < most_handles; ++i, at = (at + 1) % most_handles) {
    const MPI_File there = handles[at].file.load(std::memory_order_acquire);
    if (there == file) return handles[at].record.load(std::memory_order_relaxed) ? &handles[at] : nullptr;
    if (there == nullptr) return nullptr;  // places are never emptied again, only given on
  }
  return nullptr;
}

void remember(MPI_File file, Record* record) {
  std::lock_guard guard(handles_mutex);
  Handle* place = nullptr;
  for (size_t i = 0, at = first_place(file); i < most_handles; ++i, at = (at + 1) % most_handles) {
    Handle& here = handles[at];
    const MPI_File there = here.file.load(std::memory_order_relaxed);
    if (there == file) place = &here;
    if (!place && here.record.load(std::memory_order_relaxed) == nullptr) place = &here;
    if (there == file || there == nullptr) break;
  }
  if (!place) return;
  place->disp = 0, place->etype_bytes = 1, place->tile_bytes = 1, place->tile_extent = 1;
  place->record.store(record, std::memory_order_relaxed);
  place->file.store(file, std::memory_order_release);
}

class Observing {
 public:
  explicit Observing(Record* record) : scope_(record ? &record->meter : nullptr) { observing = true; }
  ~Observing() { observing = false; }

 private:
  MeterScope scope_;
};

Record* record_of_name(const char* name) {
  if (!name) return nullptr;
  return profile::record_for(profile::Interface::mpiio, frontend::path_of_filename(name));
}

// Where the front end has not said what the accesses should keep to, it is the file system's block.
void look_at_blocks(Record& record, const char* name) {
  if (record.alignment.load(std::memory_order_relaxed) != 0) return;
  struct stat found {};
  if (raw::fstatat(AT_FDCWD, frontend::path_of_filename(name).c_str(), &found, 0) == 0) profile::describe(record, "", uint64_t(found.st_blksize));
}

uint64_t bytes_of(MPI_Count count, MPI_Datatype type) {
  MPI_Count size = 0;
  if (count <= 0 || type == MPI_DATATYPE_NULL || real.Type_size_x(type, &size) != MPI_SUCCESS || size < 0) return 0;
  return uint64_t(size) * uint64_t(count);
}

// Where an access begins that begins `etypes` into the view, in bytes of the file.
uint64_t place_in_file(const Handle& h, int64_t etypes) {
  const int64_t tile = h.tile_bytes.load(std::memory_order_relaxed);
  if (etypes < 0 || tile <= 0) return profile::unknown_offset;
  const int64_t data = etypes * h.etype_bytes.load(std::memory_order_relaxed);
  const int64_t at = h.disp.load(std::memory_order_relaxed) + data / tile * h.tile_extent.load(std::memory_order_relaxed) + data % tile;
  return uint64_t(at);
}

// Of this process, in etypes; -1: MPI does not say.
int64_t pointer_of(MPI_File file) {
  MPI_Offset at = -1;
  if (!hf_is_protected(file)) return real.File_get_position(file, &at) == MPI_SUCCESS ? at : -1;
  frontend::OurCode inside;
  return hf_File_get_position(file, &at) == MPI_SUCCESS ? at : -1;
}

void learn_view(Handle& h, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype) {
  MPI_Count etype_bytes = 0, tile = 0, lower = 0, extent = 0;
  real.Type_size_x(etype, &etype_bytes);
  real.Type_size_x(filetype, &tile);
  real.Type_get_extent_x(filetype, &lower, &extent);
  h.disp = disp, h.etype_bytes = etype_bytes, h.tile_bytes = tile, h.tile_extent = extent;
}

uint64_t bytes_read(MPI_Status* status) {
  MPI_Count bytes = 0;
  return real.Get_elements_x(status, MPI_BYTE, &bytes) == MPI_SUCCESS && bytes > 0 ? uint64_t(bytes) : 0;
}

int counted(Record* record, Counter kind, Served served, void* arguments) {
  Observing now(record);
  const uint64_t begin = profile::ticks();
  const int code = served(arguments);
  if (!record) return code;
  profile::count(*record, kind, begin, profile::ticks());
  if (code != MPI_SUCCESS) profile::count_failure(*record);
  return code;
}

}  // namespace

int observe_access(ObservedAccess a, int (*served)(void*, MPI_Status*), void* arguments) {
  Handle* handle = find(a.file);
  if (!handle) return served(arguments, a.status);
  Record& record = *handle->record.load(std::memory_order_relaxed);
  profile::CountedCall access{a.write, a.kind, a.manner, profile::unknown_offset, bytes_of(a.count, a.type)};
  if (a.at_pointer) a.offset = pointer_of(a.file);
  access.offset = place_in_file(*handle, a.offset);
  MPI_Status own;
  MPI_Status* const status = a.write || !a.status || a.status != MPI_STATUS_IGNORE ? a.status : &own;
  Observing now(&record);
  const uint64_t begin = profile::ticks();
  const int code = served(arguments, status);
  const uint64_t end = profile::ticks();
  if (code != MPI_SUCCESS) access.bytes = 0, profile::count_failure(record);
  else if (!a.write && status) access.bytes = bytes_read(status);
  profile::count(record, access, begin, end);
  return code;
}

// The data was counted at the beginning, the time here is the same access's.
int observe_end_of_split(bool write, MPI_File file, Served served, void* arguments) {
  Handle* handle = find(file);
  Record* record = handle ? handle->record.load(std::memory_order_relaxed) : nullptr;
  Observing now(record);
  const uint64_t begin = profile::ticks();
  const int code = served(arguments);
  if (!record) return code;
  profile::add_time(*record, write ? Counter::write_ns : Counter::read_ns, profile::ticks() - begin);
  if (code != MPI_SUCCESS) profile::count_failure(*record);
  return code;
}

int observe_open(const char* name, MPI_File* file, Served served, void* arguments) {
  Record* record = record_of_name(name);
  const profile::OpeningScope opening(record);
  const int code = counted(record, Counter::opens, served, arguments);
  if (record && code == MPI_SUCCESS) {
    look_at_blocks(*record, name);
    remember(*file, record);
  }
  return code;
}

int observe_close(MPI_File* file, Served served, void* arguments) {
  Handle* handle = file ? find(*file) : nullptr;
  Record* record = handle ? handle->record.load(std::memory_order_relaxed) : nullptr;
  const profile::OpeningScope closing(record);
  if (handle) handle->record.store(nullptr, std::memory_order_relaxed);
  return counted(record, Counter::closes, served, arguments);
}

int observe_delete(const char* name, Served served, void* arguments) { return counted(record_of_name(name), Counter::unlinks, served, arguments); }

int observe_view(MPI_File file, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, Served served, void* arguments) {
  Handle* handle = find(file);
  const int code = counted(handle ? handle->record.load(std::memory_order_relaxed) : nullptr, Counter::views, served, arguments);
  if (handle && code == MPI_SUCCESS) learn_view(*handle, disp, etype, filetype);
  return code;
}

int observe_call(MPI_File file, Counter kind, Served served, void* arguments) {
  Handle* handle = find(file);
  return counted(handle ? handle->record.load(std::memory_order_relaxed) : nullptr, kind, served, arguments);
}

}  // namespace holdfast::intercept
