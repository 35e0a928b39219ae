// Data access through the shared pointer of a file that is not protected.
#include <algorithm>
#include <type_traits>

#include "frontend/mpi/flatten.hpp"
#include "frontend/mpi/native.hpp"
#include "frontend/mpi/own_code.hpp"
#include "frontend/mpi/transfer.hpp"

namespace holdfast::frontend {

namespace {

// MPI's own call, the large twin where there is one. What it runs of the program (the file's error handler) is served like
// the program's calls.
#define HF_NATIVE(name, ...)                                                                     \
  [&](auto& mpi) {                                                                               \
    holdfast::frontend::ProgramCode program;                                                     \
    if constexpr (std::decay_t<decltype(mpi)>::has_##name##_c) return mpi.name##_c(__VA_ARGS__); \
    else return mpi.name(__VA_ARGS__);                                                           \
  }(real)

struct TypeFacts {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  uint64_t size = 0;
  int64_t true_lb = 0;
  bool one_block = false;   // a single copy
  bool contiguous = false;  // any number of copies
};

// Of the last predefined type that this thread has used: those never change, and are what most calls give.
thread_local TypeFacts last_type;

bool learn_type(MPI_Datatype type, TypeFacts& facts) {
  if (type == last_type.type && type != MPI_DATATYPE_NULL) {
    facts = last_type;
    return true;
  }
  auto map = flatten(type, Flavour::bytes);
  if (!map) return false;
  facts = {type, (*map)->size(), (*map)->true_lb(), (*map)->contiguous(1), (*map)->contiguous(2)};
  if (is_predefined(type)) last_type = facts;
  return true;
}

// One call's data, once its arguments have been found to make sense.
struct Access {
  Direction direction = Direction::read;
  NativeView* view = nullptr;
  void* buffer = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::byte* bytes_at = nullptr;
  uint64_t bytes = 0;
  int64_t etypes = 0;
  bool direct = false;
};

Fault plan(PlainMpiFile& file, Direction direction, void* buffer, MPI_Count count, MPI_Datatype type, Access& access) {
  access.direction = direction;
  access.view = file.view();
  access.type = MPI_BYTE;  // until all is well: what a rank with wrong arguments brings to a collective call
  access.direct = true;
  if (direction == Direction::write && !file.writes()) return Fault(MPI_ERR_READ_ONLY);
  if (direction == Direction::read && !file.reads()) return Fault(MPI_ERR_ACCESS);
  if (file.views_differ) return different_views(file.rank == 0);
  if (count < 0) return Fault(MPI_ERR_COUNT);
  TypeFacts facts;
  if (!learn_type(type, facts)) return Fault(MPI_ERR_TYPE);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(facts.size, static_cast<uint64_t>(count), &bytes)) return Fault(MPI_ERR_COUNT);
  if (access.view == nullptr) return Fault(MPI_ERR_IO, "MPI does not tell the file's view");
  const int64_t etype_bytes = access.view->etype_bytes;
  if (bytes != 0 && (etype_bytes == 0 || bytes % static_cast<uint64_t>(etype_bytes) != 0)) return Fault(MPI_ERR_IO);
  if (bytes != 0 && buffer == nullptr && facts.true_lb == 0) return Fault(MPI_ERR_BUFFER);
  access.buffer = buffer;
  access.count = count;
  access.type = type;
  access.bytes = bytes;
  access.etypes = etype_bytes == 0 ? 0 : static_cast<int64_t>(bytes) / etype_bytes;
  access.bytes_at = static_cast<std::byte*>(buffer) + facts.true_lb;
  access.direct = access.view->direct && (bytes == 0 || facts.contiguous || (count == 1 && facts.one_block));
  return Fault();
}

bool move_directly(const PlainMpiFile& file, const Access& access, int64_t at, uint64_t& moved) {
  moved = access.bytes;
  if (access.bytes == 0) return true;
  const uint64_t offset = static_cast<uint64_t>(access.view->first_byte + at * access.view->etype_bytes);
  if (access.direction == Direction::write) return file.descriptor.write(access.bytes_at, access.bytes, offset);
  return file.descriptor.read(access.bytes_at, access.bytes, offset, moved);
}

int call_mpi(PlainMpiFile& file, const Access& a, int64_t at, bool together, MPI_Status* status) {
  if (a.direction == Direction::write) {
    return together ? HF_NATIVE(File_write_at_all, file.handle, at, a.buffer, a.count, a.type, status)
                    : HF_NATIVE(File_write_at, file.handle, at, a.buffer, a.count, a.type, status);
  }
  return together ? HF_NATIVE(File_read_at_all, file.handle, at, a.buffer, a.count, a.type, status)
                  : HF_NATIVE(File_read_at, file.handle, at, a.buffer, a.count, a.type, status);
}

// MPIs report whole counts for collective and strided reads past the end: so the file's size has its say.
int move_by_mpi(PlainMpiFile& file, const Access& access, int64_t at, bool together, MPI_Status* status, uint64_t& moved) {
  MPI_Status own;
  const int code = call_mpi(file, access, at, together, status == MPI_STATUS_IGNORE ? &own : status);
  MPI_Count bytes = 0;
  real.Get_elements_x(status == MPI_STATUS_IGNORE ? &own : status, MPI_BYTE, &bytes);
  moved = code == MPI_SUCCESS && bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
  if (code != MPI_SUCCESS || access.direction == Direction::write) return code;
  if (const int64_t there = file.bytes_from(at); there >= 0 && moved > static_cast<uint64_t>(there)) {
    moved = static_cast<uint64_t>(there);
    set_status(status, moved);
  }
  return code;
}

int64_t claim(PlainMpiFile& file, int64_t etypes, bool writing, Fault& fault) {
  if (!file.moved.load(std::memory_order_relaxed)) file.moved.store(true, std::memory_order_relaxed);
  const int64_t at = file.shared.pointer->fetch_add(etypes);
  if (at < 0) fault = file.shared.pointer->failure();
  else if (writing && file.shared.records) file.shared.records->written_through_pointer(at + etypes);
  return at;
}

// The data in one piece, for a log; `packed` holds it where it does not lie so in the program's buffer.
ByteView in_one_piece(const Access& access, Bytes& packed) {
  if (access.bytes == 0) return {};
  TypeFacts facts;
  (void)learn_type(access.type, facts);
  if (facts.contiguous || (access.count == 1 && facts.one_block)) return ByteView(access.bytes_at, access.bytes);
  packed.resize(access.bytes);
  if (auto map = flatten(access.type, Flavour::bytes)) pack(**map, static_cast<const std::byte*>(access.buffer), 0, packed);
  return packed;
}

// Records that go to a log instead, packed. False: not this one.
bool log_record(PlainMpiFile& file, const Access& access, Fault& fault) {
  if (!file.shared.records) return false;
  RecordLog& records = *file.shared.records;
  if (access.direction == Direction::write) {
    Bytes packed;
    const Status status = records.append(in_one_piece(access, packed));
    if (status.kind() != Kind::unsupported) {
      if (!file.moved.load(std::memory_order_relaxed)) file.moved.store(true, std::memory_order_relaxed);
      fault = status;
      return true;
    }
  }
  fault = records.before_independent(file);
  return !fault.ok();
}

int query_done(void* state, MPI_Status* status) {
  set_status(status, *static_cast<uint64_t*>(state));
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
int free_done(void* state) {
  delete static_cast<uint64_t*>(state);
  return MPI_SUCCESS;
}
int cancel_done(void*, int) { return MPI_SUCCESS; }

// The request of an access that is done already.
int done_request(uint64_t bytes, MPI_Request* request) {
  const int code = real.Grequest_start(query_done, free_done, cancel_done, new uint64_t(bytes), request);
  if (code == MPI_SUCCESS) real.Grequest_complete(*request);
  return code;
}

}  // namespace

int PlainMpiFile::access_shared(Direction direction, void* buffer, MPI_Count count, MPI_Datatype type, MPI_Status* status) {
  Access access;
  Fault fault = plan(*this, direction, buffer, count, type, access);
  if (!fault.ok()) return report(*this, fault);
  uint64_t bytes = access.bytes;
  if (!log_record(*this, access, fault) && fault.ok()) {
    const int64_t at = claim(*this, access.etypes, direction == Direction::write, fault);
    if (fault.ok() && !(access.direct && move_directly(*this, access, at, bytes))) return move_by_mpi(*this, access, at, false, status, bytes);
  }
  set_status(status, fault.ok() ? bytes : 0);
  return report(*this, fault);
}

// Done when it returns: Open MPI's own nonblocking reads at the end of a file never end, and MPICH's requests are freed twice.
int PlainMpiFile::start_shared(Direction direction, void* buffer, MPI_Count count, MPI_Datatype type, MPI_Request* request) {
  Access access;
  Fault fault = plan(*this, direction, buffer, count, type, access);
  if (!fault.ok()) return report(*this, fault);
  uint64_t bytes = access.bytes;
  if (log_record(*this, access, fault)) return fault.ok() ? done_request(bytes, request) : report(*this, fault);
  const int64_t at = claim(*this, access.etypes, direction == Direction::write, fault);
  if (!fault.ok()) return report(*this, fault);
  if (access.direct && move_directly(*this, access, at, bytes)) return done_request(bytes, request);
  const int code = move_by_mpi(*this, access, at, false, MPI_STATUS_IGNORE, bytes);
  return code == MPI_SUCCESS ? done_request(bytes, request) : code;
}

// ---------------------------------------------------------------- ordered

namespace {

// What a rank brings to an ordered call, and what it gets.
struct Turn {
  int64_t etypes;       // in: its own; out: where they begin
  int64_t by_mpi;       // 1: it cannot move its data by a system call; out: some rank cannot
  int64_t fingerprint;  // of its view; out: 0, or 1 where they differ
};
constexpr int kNumbers = sizeof(Turn) / sizeof(int64_t);

// One request to the pointer for all: rank 0 collects, claims and tells each rank its place.
void turns_by_root(PlainMpiFile& file, Turn& turn) {
  std::vector<Turn> all(file.rank == 0 ? static_cast<size_t>(file.ranks) : 0);
  real.Gather(&turn, kNumbers, MPI_INT64_T, all.data(), kNumbers, MPI_INT64_T, 0, file.comm);
  if (file.rank == 0) {
    int64_t total = 0, by_mpi = 0, differ = 0;
    for (const Turn& one : all) {
      total += one.etypes;
      by_mpi |= one.by_mpi;
      differ |= one.fingerprint != all[0].fingerprint;
    }
    int64_t at = differ ? 0 : file.shared.pointer->fetch_add(total);
    for (Turn& one : all) {
      const int64_t etypes = one.etypes;
      one = {at, by_mpi, differ};
      if (at >= 0) at += etypes;
    }
  }
  real.Scatter(all.data(), kNumbers, MPI_INT64_T, &turn, kNumbers, MPI_INT64_T, 0, file.comm);
}

// The same without one rank that hears from all: sums are passed along, the last rank claims for everybody.
void turns_by_scan(PlainMpiFile& file, Turn& turn) {
  int64_t before = 0;
  real.Exscan(&turn.etypes, &before, 1, MPI_INT64_T, MPI_SUM, file.comm);
  if (file.rank == 0) before = 0;
  int64_t mine[3] = {turn.by_mpi, turn.fingerprint, ~turn.fingerprint}, most[3];
  real.Allreduce(mine, most, 3, MPI_INT64_T, MPI_MAX, file.comm);
  Turn all{0, most[0], most[1] != ~most[2]};
  if (file.rank == file.ranks - 1 && !all.fingerprint) all.etypes = file.shared.pointer->fetch_add(before + turn.etypes);
  real.Bcast(&all, kNumbers, MPI_INT64_T, file.ranks - 1, file.comm);
  turn = all;
  if (turn.etypes >= 0) turn.etypes += before;
}

Fault take_turn(PlainMpiFile& file, Turn& turn) {
  file.moved.store(true, std::memory_order_relaxed);
  if (file.ranks == 1) {
    turn = {file.shared.pointer->fetch_add(turn.etypes), turn.by_mpi, 0};
  } else if (file.settings.ordered_by_scan) {
    turns_by_scan(file, turn);
  } else {
    turns_by_root(file, turn);
  }
  if (turn.fingerprint != 0) return different_views(file.rank == 0);
  if (turn.etypes < 0) return Fault(MPI_ERR_IO, file.rank == 0 ? "the process that keeps the shared file pointer does not answer" : "");
  return Fault();
}

// Ordered, but to be merged later: whoever fails here goes along with nothing.
int log_ordered(PlainMpiFile& file, const Access& access, const Fault& fault, MPI_Status* status, uint64_t& moved) {
  Bytes packed;
  const Status kept = file.shared.records->append_ordered(file, fault.ok() ? in_one_piece(access, packed) : ByteView());
  file.moved.store(true, std::memory_order_relaxed);
  moved = fault.ok() && kept.ok() ? access.bytes : 0;
  set_status(status, moved);
  return report(file, fault.ok() ? Fault(kept) : fault);
}

}  // namespace

int PlainMpiFile::access_ordered(Direction direction, void* buffer, MPI_Count count, MPI_Datatype type, MPI_Status* status, uint64_t& bytes) {
  bytes = 0;
  const bool logged = shared.records && direction == Direction::write && shared.records->keeps_ordered(*this);
  if (!logged) {
    if (const Fault before = before_call(true); !before.ok()) return report(*this, before);
  }
  Access access;
  const Fault fault = plan(*this, direction, buffer, count, type, access);
  if (logged) return log_ordered(*this, access, fault, status, bytes);
  // Whoever fails here goes along with nothing, so that the other ranks do not wait for it for ever.
  Turn turn{access.etypes, !access.direct, access.view ? static_cast<int64_t>(access.view->fingerprint >> 1) : 0};
  const Fault turned = take_turn(*this, turn);
  if (!turned.ok()) return report(*this, fault.ok() ? turned : fault);
  if (turn.by_mpi == 0 && move_directly(*this, access, turn.etypes, bytes)) {
    set_status(status, bytes);
    return report(*this, fault);
  }
  const int code = move_by_mpi(*this, access, turn.etypes, turn.by_mpi != 0, MPI_STATUS_IGNORE, bytes);
  set_status(status, bytes);
  return fault.ok() ? code : report(*this, fault);
}

}  // namespace holdfast::frontend
