#include "frontend/mpi/transfer.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "frontend/external32.hpp"
#include "frontend/mpi/flatten.hpp"

namespace holdfast::frontend {

namespace {

// What is packed or listed at once; larger transfers go in several pieces.
constexpr uint64_t kPieceBytes = 16ull << 20;

// Sorted and joined; what an overlapping or descending list covers.
std::vector<Extent> union_of(std::vector<Extent> extents) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
  std::vector<Extent> joined;
  for (const Extent& extent : extents) {
    if (!joined.empty() && extent.offset <= joined.back().end()) {
      joined.back().length = std::max(joined.back().end(), extent.end()) - joined.back().offset;
    } else {
      joined.push_back(extent);
    }
  }
  return joined;
}

}  // namespace

Fault Transfer::plan(ProtectedMpiFile& file, Direction direction, const UserData& data, Transfer& into) {
  if (direction == Direction::write && !file.writes()) return Fault(MPI_ERR_READ_ONLY);
  if (direction == Direction::read && !file.reads()) return Fault(MPI_ERR_ACCESS);
  if (data.count < 0) return Fault(MPI_ERR_COUNT);
  const auto count = static_cast<uint64_t>(data.count);
  auto memory = flatten(data.type, Flavour::bytes);
  if (!memory) return Fault(MPI_ERR_TYPE);
  const View& view = file.view;
  into.direction_ = direction;
  into.buffer_ = const_cast<std::byte*>(static_cast<const std::byte*>(data.at));
  into.memory_ = *memory;
  into.filetype_ = view.file;
  into.disp_ = view.disp;
  into.etype_bytes_ = view.etype_bytes;
  into.atomic_ = file.atomic;
  into.may_meet_itself_ = direction == Direction::write && view.tiles_overlap;
  if (__builtin_mul_overflow((*memory)->size(), count, &into.memory_bytes_)) return Fault(MPI_ERR_COUNT);
  into.file_bytes_ = into.memory_bytes_;
  into.direct_ = !view.external && (*memory)->contiguous(count);
  if (view.external) {
    auto elements = flatten(data.type, Flavour::elements);
    if (!elements) return Fault(MPI_ERR_TYPE);
    into.elements_ = *elements;
    into.file_bytes_ = external_size(**elements, into.memory_bytes_);
  }
  if (into.file_bytes_ == 0) return Fault();
  if (into.buffer_ == nullptr && into.memory_->true_lb() == 0) return Fault(MPI_ERR_BUFFER);
  if (view.etype_bytes == 0 || view.file->size() == 0) return Fault(MPI_ERR_IO);  // a view without data
  if (into.file_bytes_ % view.etype_bytes != 0) return Fault(MPI_ERR_IO);         // not a whole number of etypes
  return Fault();
}

Transfer Transfer::nothing(ProtectedMpiFile& file, Direction direction) {
  Transfer transfer;
  transfer.direction_ = direction;
  transfer.memory_ = transfer.filetype_ = file.view.file;
  transfer.direct_ = true;
  return transfer;
}

ByteView Transfer::in_one_piece(Bytes& packed) const {
  if (file_bytes_ == 0) return {};
  if (direct_) return ByteView(buffer_ + memory_->true_lb(), file_bytes_);
  packed.resize(file_bytes_);
  pack(*memory_, buffer_, 0, packed);
  return packed;
}

uint64_t Transfer::piece_bytes() const {
  if (atomic_ || elements_) return file_bytes_;  // external32 is cut nowhere inside an element
  return direct_ && filetype_->one_block() && filetype_->contiguous(2) ? file_bytes_ : kPieceBytes;
}

Fault Transfer::run(CollectiveFile& stack, bool collective) {
  const uint64_t step = std::max<uint64_t>(piece_bytes(), 1);
  const bool writes = direction_ == Direction::write;
  uint64_t done = 0;
  Fault fault;
  if (collective) {
    fault = writes ? write_together(stack, step, done) : read_together(stack, step, done);
  } else {
    if (writes) HF_FAULT(check_meets_itself());
    for (bool more = true; more;) {
      const Piece piece{done, std::min(step, file_bytes_ - done)};
      uint64_t got = piece.bytes;
      more = done + piece.bytes < file_bytes_;
      fault = writes ? write_piece(stack, piece) : read_piece(stack, nullptr, piece, got);
      if (!fault.ok()) break;
      done += got;
      if (got < piece.bytes) break;  // the end of the file
    }
  }
  file_bytes_moved_ = done;
  bytes_moved_ = elements_ ? native_size(*elements_, done) : done;
  return fault;
}

Fault Transfer::pack_piece(Piece piece, Packed& into) const {
  if (piece.bytes == 0) return Fault();
  if (direct_) {
    into.data = ByteView(buffer_ + memory_->true_lb() + piece.from, piece.bytes);
    return Fault();
  }
  into.native.resize(elements_ ? memory_bytes_ : piece.bytes);
  pack(*memory_, buffer_, elements_ ? 0 : piece.from, into.native);
  into.data = into.native;
  if (!elements_) return Fault();
  into.converted.resize(piece.bytes);
  if (Status status = to_external(*elements_, into.native, into.converted); !status.ok()) return Fault(MPI_ERR_CONVERSION, status.sentence());
  into.data = into.converted;
  return Fault();
}

// Which of its bytes such a write would leave MPI does not say.
Fault Transfer::check_meets_itself() const {
  if (!may_meet_itself_ || !have_common_bytes(extents_of(*filetype_, disp_, position_, file_bytes_))) return Fault();
  return Fault(MPI_ERR_TYPE, "the write covers bytes twice: the filetype's extent is less than what it spans");
}

Fault Transfer::write_piece(CollectiveFile& stack, Piece piece) {
  Packed packed;
  HF_FAULT(pack_piece(piece, packed));
  return stack.write(extents_of(*filetype_, disp_, position_ + piece.from, piece.bytes), packed.data);
}

// All ranks go on until none has more; one that cannot convert its data brings nothing, for the others wait for it.
Fault Transfer::write_together(CollectiveFile& stack, uint64_t step, uint64_t& done) {
  Fault mine = check_meets_itself();
  for (bool more = true; more;) {
    Piece piece{done, std::min(step, file_bytes_ - done)};
    Packed packed;
    if (mine.ok()) mine = pack_piece(piece, packed);
    if (!mine.ok()) piece.bytes = 0, packed.data = {};
    more = mine.ok() && done + piece.bytes < file_bytes_;
    HF_FAULT(stack.write_all(extents_of(*filetype_, disp_, position_ + piece.from, piece.bytes), packed.data, more));
    done += piece.bytes;
  }
  return mine;
}

// The same for reads; a rank that has come to the end of the file, or failed, asks for nothing more.
Fault Transfer::read_together(CollectiveFile& stack, uint64_t step, uint64_t& done) {
  Fault mine;
  bool ended = false;
  for (bool more = true; more;) {
    const Piece piece{done, ended ? 0 : std::min(step, file_bytes_ - done)};
    uint64_t got = piece.bytes;
    more = !ended && done + piece.bytes < file_bytes_;
    Fault fault = read_piece(stack, &more, piece, got);
    if (mine.ok()) mine = std::move(fault);
    if (mine.ok()) done += got;
    ended |= !mine.ok() || got < piece.bytes;
  }
  return mine;
}

// `more`: of a collective read, as in read_all; null: of this rank alone.
Fault Transfer::read_piece(CollectiveFile& stack, bool* more, Piece piece, uint64_t& got) {
  const std::vector<Extent> extents = extents_of(*filetype_, disp_, position_ + piece.from, piece.bytes);
  Bytes staging(direct_ ? 0 : piece.bytes);
  const ByteSpan into = piece.bytes == 0 ? ByteSpan()
                        : direct_        ? ByteSpan(buffer_ + memory_->true_lb() + piece.from, piece.bytes)
                                         : ByteSpan(staging);
  auto read =
      filetype_->ascending() ? (more ? stack.read_all(extents, into, *more) : stack.read(extents, into)) : read_any_order(stack, more, extents, into);
  if (!read) return read.status();
  got = std::min(*read, piece.bytes);
  if (direct_ || got == 0) return Fault();
  if (!elements_) {
    unpack(*memory_, ByteView(staging).first(got), piece.from, buffer_);
    return Fault();
  }
  Bytes native(native_size(*elements_, got));
  HF_FAULT(from_external(*elements_, ByteView(staging).first(got), native));
  unpack(*memory_, native, 0, buffer_);
  return Fault();
}

// A filetype may cover a byte twice, or go backwards, where it is only read: what it covers is read once, upwards.
Result<uint64_t> Transfer::read_any_order(CollectiveFile& stack, bool* more, const std::vector<Extent>& extents, ByteSpan into) {
  const std::vector<Extent> covered = union_of(extents);
  std::vector<uint64_t> before;  // data bytes in the covered extents before i
  uint64_t bytes = 0;
  for (const Extent& extent : covered) before.push_back(bytes), bytes += extent.length;
  Bytes data(bytes);
  auto read = more ? stack.read_all(covered, data, *more) : stack.read(covered, data);
  if (!read) return read;
  uint64_t at = 0, complete = 0;
  bool whole = true;
  for (const Extent& extent : extents) {
    auto after = std::upper_bound(covered.begin(), covered.end(), extent.offset, [](uint64_t offset, const Extent& c) { return offset < c.offset; });
    const size_t i = after - covered.begin() - 1;
    const uint64_t from = before[i] + extent.offset - covered[i].offset;
    const uint64_t there = std::min(extent.length, *read > from ? *read - from : 0);
    std::memcpy(into.data() + at, data.data() + from, there);
    if (whole) complete += there;
    whole = whole && there == extent.length;
    at += extent.length;
  }
  return complete;
}

void set_status(MPI_Status* status, uint64_t bytes) {
  if (status == MPI_STATUS_IGNORE) return;
  real.Status_set_elements_x(status, MPI_BYTE, static_cast<MPI_Count>(bytes));
  real.Status_set_cancelled(status, 0);
}

}  // namespace holdfast::frontend
