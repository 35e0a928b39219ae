#include "frontend/mpi/file.hpp"

#include <algorithm>

#include "frontend/mpi/requests.hpp"
#include "owned_mpi.h"

namespace holdfast::frontend {

namespace {

std::atomic<int> open_count{0};

struct Table {
  std::mutex mutex;
  std::map<MPI_File, FilePtr> files;
  uint64_t opened = 0;
};
Table& table() {
  static auto* made = new Table;  // programs may close files from exit handlers
  return *made;
}

}  // namespace

File::~File() {
  stack.reset();
  release_pointer();
  exchange.reset();
  if (group != MPI_GROUP_NULL) real.Group_free(&group);
}

Status File::place(int64_t etypes, ByteView packed) {
  if (packed.empty()) return Status();
  const uint64_t from = static_cast<uint64_t>(etypes) * view.etype_bytes;
  return stack->write(extents_of(*view.file, view.disp, from, packed.size()), packed);
}

Fault File::before_call(bool together) {
  if (!shared.records) return Fault();
  return together ? shared.records->at_collective(*this) : shared.records->before_independent(*this);
}

Fault File::show_written() {
  if (!writes() || !reads() || atomic) return Fault();
  const bool mine = written_through_pointer.exchange(false);
  if (exchange->all_max({mine})[0] == 0) return Fault();
  const Fault fault = told_once(*this, stack->sync());
  if (!fault.ok()) written_through_pointer = mine;
  return fault;
}

void File::release_pointer() {
  shared.records.reset();
  shared.pointer.reset();
  if (pointer_group) pointer_group->file_closed();
  pointer_group.reset();
}

void remember_file(const FilePtr& file) {
  std::lock_guard lock(table().mutex);
  file->number = table().opened++;
  table().files[file->carrier] = file;
  open_count.fetch_add(1, std::memory_order_relaxed);
}

FilePtr find_file(MPI_File fh) {
  std::lock_guard lock(table().mutex);
  auto found = table().files.find(fh);
  return found == table().files.end() ? nullptr : found->second;
}

void forget_file(MPI_File fh) {
  std::lock_guard lock(table().mutex);
  if (table().files.erase(fh) != 0) open_count.fetch_sub(1, std::memory_order_relaxed);
}

std::vector<FilePtr> open_files() {
  std::lock_guard lock(table().mutex);
  std::vector<FilePtr> files;
  for (const auto& [fh, file] : table().files) files.push_back(file);
  std::sort(files.begin(), files.end(), [](const FilePtr& a, const FilePtr& b) { return a->number < b->number; });
  return files;
}

Fault agree(exchange::Exchange& exchange, const Fault& mine) {
  const int64_t first = mine.ok() ? INT64_MIN : -int64_t(exchange.rank());
  const std::vector<int64_t> most = exchange.all_max({mine.code, first});
  if (mine.ok()) return Fault(static_cast<int>(most[0]));
  return most[1] == first ? mine : Fault(mine.code);  // one line on stderr is enough
}

Fault different_views(bool speak) {
  return Fault(MPI_ERR_NOT_SAME,
               speak ? "the processes have given different views, so they cannot share a file pointer; set one view on all of them first" : "");
}

Fault told_once(const File& file, const Status& status) { return file.exchange->rank() == 0 ? Fault(status) : Fault(Fault(status).code); }

}  // namespace holdfast::frontend

bool hf_is_protected(MPI_File fh) {
  return holdfast::frontend::open_count.load(std::memory_order_relaxed) != 0 && holdfast::frontend::find_file(fh) != nullptr;
}
