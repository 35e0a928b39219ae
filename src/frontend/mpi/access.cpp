// Blocking data access, independent and collective, with explicit offsets, individual pointers and the shared pointer.
#include <climits>

#include "frontend/mpi/access.hpp"
#include "frontend/mpi/requests.hpp"
#include "owned_mpi.h"

namespace holdfast::frontend {

Fault check_where(const ProtectedMpiFile& file, Where where, MPI_Offset offset) {
  const bool shared = where == Where::shared || where == Where::ordered;
  if (file.sequential() && !shared) return Fault(MPI_ERR_UNSUPPORTED_OPERATION);
  if (shared && file.views_differ) return different_views(file.exchange->rank() == 0);
  if (where == Where::offset && !file.view.reaches(offset)) return Fault(MPI_ERR_ARG);
  return Fault();
}

namespace {

// Ordered: the ranks' data lies in rank order from the shared pointer on. All counts are known before it moves, and
// it has moved before anybody goes on.
int64_t take_turns(ProtectedMpiFile& file, int64_t etypes) {
  const auto bytes = std::as_bytes(std::span(&etypes, 1));
  int64_t before_mine = 0, all = 0;
  const std::vector<Bytes> counts = file.exchange->all_gather(bytes);
  for (int rank = 0; rank < file.exchange->size(); ++rank) {
    const int64_t count = *reinterpret_cast<const int64_t*>(counts[rank].data());
    if (rank < file.exchange->rank()) before_mine += count;
    all += count;
  }
  const int64_t claimed = file.exchange->rank() == 0 ? file.shared.pointer->fetch_add(all) : INT64_MIN;
  const int64_t start = file.exchange->all_max({claimed})[0];
  return start < 0 ? start : start + before_mine;
}

}  // namespace

int64_t claim_position(ProtectedMpiFile& file, Where where, MPI_Offset offset, int64_t etypes) {
  switch (where) {
    case Where::offset: return offset;
    case Where::shared: {
      const int64_t at = file.shared.pointer->fetch_add(etypes);
      if (at >= 0 && file.writes() && file.shared.records) file.shared.records->written_through_pointer(at + etypes);
      return at;
    }
    case Where::ordered: return take_turns(file, etypes);
    case Where::individual: break;
  }
  std::lock_guard lock(file.mutex);
  const int64_t at = file.position;
  file.position += etypes;
  return at;
}

namespace {

bool writes_through_pointer(const DataAccess& access) {
  return access.direction == Direction::write && (access.where == Where::shared || access.where == Where::ordered);
}

// A write through the shared pointer that goes to a log. False: it does not, and what waits in logs has its places now.
bool log_write(ProtectedMpiFile& file, const DataAccess& access, const Transfer& transfer, Fault& fault) {
  if (!file.shared.records) return false;
  RecordLog& records = *file.shared.records;
  const bool write = access.direction == Direction::write;
  Bytes packed;
  if (write && access.where == Where::ordered && records.keeps_ordered(file)) {
    fault = records.append_ordered(file, transfer.in_one_piece(packed));
    return true;
  }
  if (write && access.where == Where::shared && file.fit_for_log()) {
    const Status status = records.append(transfer.in_one_piece(packed));
    if (status.kind() != Kind::unsupported) {
      fault = status;
      return true;
    }
  }
  fault = file.before_call(access.collective);
  return false;
}

// What the call's arguments allow. Whoever fails goes along with nothing in a collective call, so that the other ranks do
// not wait for it for ever.
Fault prepare(ProtectedMpiFile& file, const DataAccess& access, Transfer& transfer) {
  Fault fault = check_where(file, access.where, access.offset);
  if (fault.ok()) {
    std::lock_guard lock(file.mutex);
    fault = Transfer::plan(file, access.direction, access.data, transfer);
  }
  if (!fault.ok()) transfer = Transfer::nothing(file, access.direction);
  return fault;
}

// From position `at` on, between memory and file.
Fault run_at(ProtectedMpiFile& file, const DataAccess& access, int64_t at, Transfer& transfer) {
  transfer.start_at(at);
  Fault moved = transfer.run(*file.stack, access.collective);
  if (access.collective && access.direction == Direction::write && moved.code != MPI_ERR_CONVERSION && moved.code != MPI_ERR_TYPE &&
      file.exchange->rank() != 0) {
    moved.sentence.clear();  // all ranks have got it, one says it
  }
  return moved;
}

}  // namespace

Fault move_data(ProtectedMpiFile& file, const DataAccess& access, uint64_t& bytes) {
  bytes = 0;
  drain(file);
  Transfer transfer;
  Fault fault = prepare(file, access, transfer);
  if (!fault.ok() && !access.collective) return fault;
  if (writes_through_pointer(access)) file.written_through_pointer = true;
  Fault logged;
  if (log_write(file, access, transfer, logged)) {
    if (fault.ok() && logged.ok()) bytes = transfer.bytes();
    return fault.ok() ? logged : fault;
  }
  if (logged.ok() && access.where == Where::ordered && access.direction == Direction::read) logged = file.show_written();
  if (!logged.ok()) return fault.ok() ? logged : fault;
  int64_t at = claim_position(file, access.where, access.offset, transfer.etypes());
  if (at < 0) {  // who has no place goes along with nothing
    if (fault.ok()) fault = file.lost_pointer();
    if (!access.collective) return fault;
    transfer = Transfer::nothing(file, access.direction);
    at = 0;
  }
  const Fault moved = run_at(file, access, at, transfer);
  if (!fault.ok()) return fault;
  bytes = transfer.bytes_moved();
  if (access.where == Where::individual && transfer.etypes_moved() != transfer.etypes()) {
    std::lock_guard lock(file.mutex);  // the pointer stays at the end of what could be read
    file.position = at + transfer.etypes_moved();
  }
  return moved;
}

namespace {

int blocking(MPI_File fh, const DataAccess& access, MPI_Status* status) {
  return with_file(fh, [&](ProtectedMpiFile& file) {
    if (access.collective && file.split != Split::none) return Fault(MPI_ERR_IO);
    uint64_t bytes = 0;
    const Fault fault = move_data(file, access, bytes);
    set_status(status, bytes);
    return fault;
  });
}

}  // namespace

int ProtectedMpiFile::access_shared(Direction direction, void* buffer, MPI_Count count, MPI_Datatype type, MPI_Status* status) {
  uint64_t bytes = 0;
  const Fault fault = move_data(*this, {direction, Where::shared, independent, 0, {buffer, count, type}}, bytes);
  set_status(status, bytes);
  return report(*this, fault);
}

int ProtectedMpiFile::access_ordered(Direction direction, void* buffer, MPI_Count count, MPI_Datatype type, MPI_Status* status, uint64_t& bytes) {
  const Fault fault = move_data(*this, {direction, Where::ordered, together, 0, {buffer, count, type}}, bytes);
  set_status(status, bytes);
  return report(*this, fault);
}

}  // namespace holdfast::frontend

using namespace holdfast::frontend;

int hf_File_read_at(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return blocking(fh, {Direction::read, Where::offset, independent, offset, {buf, count, datatype}}, status);
}
int hf_File_read_at_all(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return blocking(fh, {Direction::read, Where::offset, together, offset, {buf, count, datatype}}, status);
}
int hf_File_write_at(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return blocking(fh, {Direction::write, Where::offset, independent, offset, {buf, count, datatype}}, status);
}
int hf_File_write_at_all(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return blocking(fh, {Direction::write, Where::offset, together, offset, {buf, count, datatype}}, status);
}
int hf_File_read(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return blocking(fh, {Direction::read, Where::individual, independent, 0, {buf, count, datatype}}, status);
}
int hf_File_read_all(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return blocking(fh, {Direction::read, Where::individual, together, 0, {buf, count, datatype}}, status);
}
int hf_File_write(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return blocking(fh, {Direction::write, Where::individual, independent, 0, {buf, count, datatype}}, status);
}
int hf_File_write_all(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return blocking(fh, {Direction::write, Where::individual, together, 0, {buf, count, datatype}}, status);
}
