// One data access call between the user's buffer and the file: prepared in the program's thread, run there or by the worker.
#pragma once
#include <memory>

#include "frontend/mpi/file.hpp"

namespace holdfast::frontend {

// `count` copies of `type` at `at`, in the program's memory: what every data access call names (MPI-4.1, 14.4). `at` is
// written to where the call reads.
struct UserData {
  const void* at = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_BYTE;
};

class Transfer {
 public:
  // Checks the arguments against the file and its view.
  static Fault plan(ProtectedMpiFile& file, Direction direction, const UserData& data, Transfer& into);
  // No data at all: what a rank with wrong arguments brings to a collective call.
  static Transfer nothing(ProtectedMpiFile& file, Direction direction);
  void start_at(int64_t etypes) { position_ = static_cast<uint64_t>(etypes) * etype_bytes_; }
  // Of the view: what the pointers advance by.
  int64_t etypes() const { return etype_bytes_ == 0 ? 0 : static_cast<int64_t>(file_bytes_ / etype_bytes_); }
  int64_t etypes_moved() const { return etype_bytes_ == 0 ? 0 : static_cast<int64_t>(file_bytes_moved_ / etype_bytes_); }

  // Moves the data. `collective`: all ranks of the file call it together; independent ones may run in any thread.
  Fault run(CollectiveFile& stack, bool collective);
  // A write's data as it lies in the file (not external32); `packed` holds it where the buffer has it in pieces.
  ByteView in_one_piece(Bytes& packed) const;
  uint64_t bytes() const { return memory_bytes_; }
  uint64_t bytes_moved() const { return bytes_moved_; }  // in memory: what the Status says

 private:
  struct Piece {  // part of the data, in file bytes from the transfer's start
    uint64_t from, bytes;
  };
  // A piece as it lies in the file: in the user's buffer, or packed (and converted) into the two given here.
  struct Packed {
    Bytes native, converted;
    ByteView data;
  };
  Fault check_meets_itself() const;
  Fault pack_piece(Piece piece, Packed& into) const;
  Fault write_piece(CollectiveFile& stack, Piece piece);
  Fault write_together(CollectiveFile& stack, uint64_t step, uint64_t& done);
  Fault read_together(CollectiveFile& stack, uint64_t step, uint64_t& done);
  Fault read_piece(CollectiveFile& stack, bool* more, Piece piece, uint64_t& got);
  Result<uint64_t> read_any_order(CollectiveFile& stack, bool* more, const std::vector<Extent>& extents, ByteSpan into);
  uint64_t piece_bytes() const;

  Direction direction_ = Direction::read;
  std::byte* buffer_ = nullptr;
  std::shared_ptr<const Typemap> memory_;    // where the data is in the user's buffer
  std::shared_ptr<const Typemap> elements_;  // what it consists of; only for external32
  std::shared_ptr<const Typemap> filetype_;
  int64_t disp_ = 0;
  uint64_t etype_bytes_ = 1, position_ = 0;
  uint64_t memory_bytes_ = 0, file_bytes_ = 0;  // the same but for external32
  bool may_meet_itself_ = false;                // a write, by a filetype whose copies overlap
  bool atomic_ = false;                         // one call, however large
  bool direct_ = false;                         // the user's buffer is what lies in the file, in one piece
  uint64_t bytes_moved_ = 0, file_bytes_moved_ = 0;
};

void set_status(MPI_Status* status, uint64_t bytes);

}  // namespace holdfast::frontend
