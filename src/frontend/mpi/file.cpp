#include "frontend/mpi/file.hpp"

#include "frontend/mpi/requests.hpp"

namespace holdfast::frontend {

ProtectedMpiFile::~ProtectedMpiFile() {
  stack.reset();
  release_pointer();
  exchange.reset();
  if (group != MPI_GROUP_NULL) real.Group_free(&group);
}

Status ProtectedMpiFile::place(int64_t etypes, ByteView packed) {
  if (packed.empty()) return Status();
  const uint64_t from = static_cast<uint64_t>(etypes) * view.etype_bytes;
  return stack->write(extents_of(*view.file, view.disp, from, packed.size()), packed);
}

Fault ProtectedMpiFile::show_written() {
  if (!writes() || !reads() || atomic) return Fault();
  const bool mine = written_through_pointer.exchange(false);
  if (exchange->all_max({mine})[0] == 0) return Fault();
  const Fault fault = told_once(*this, stack->sync());
  if (!fault.ok()) written_through_pointer = mine;
  return fault;
}

void ProtectedMpiFile::release_pointer() {
  shared.records.reset();
  shared.pointer.reset();
  if (pointer_group) pointer_group->file_closed();
  pointer_group.reset();
}

FilePtr find_file(MPI_File fh) {
  MpiFile* file = find_any(fh);
  return file && file->is_protected() ? std::static_pointer_cast<ProtectedMpiFile>(file->shared_from_this()) : nullptr;
}

Fault agree(exchange::Exchange& exchange, const Fault& mine) {
  const int64_t first = mine.ok() ? INT64_MIN : -int64_t(exchange.rank());
  const std::vector<int64_t> most = exchange.all_max({mine.code, first});
  if (mine.ok()) return Fault(static_cast<int>(most[0]));
  return most[1] == first ? mine : Fault(mine.code);  // one line on stderr is enough
}

Fault told_once(const ProtectedMpiFile& file, const Status& status) { return file.exchange->rank() == 0 ? Fault(status) : Fault(Fault(status).code); }

}  // namespace holdfast::frontend
