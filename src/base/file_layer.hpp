// What an open file is to those above: one of these on top of another. The top of a process's own file is whatever its open has put
// there (src/file); the bottom is the protected file, or the plain one.
#pragma once
#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace holdfast {

class FileLayer {
 public:
  virtual ~FileLayer() = default;
  // `data` holds the extents' bytes one after another. Extents are in any order; they may not overlap within a call.
  virtual Status write(std::span<const Extent> extents, ByteView data) = 0;
  // Fills `into` likewise; returns how many bytes of the request, in its order, lie before the first one past the end of file
  // (for ascending extents: what MPI_Get_count must report). Bytes past the end are left alone.
  virtual Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) = 0;
  // At the end of the file, behind what other openers have put there, in one piece. Answers where it lies, which is less than was given
  // where a plain file takes less. A layer that decides the place later answers where it would be by now.
  virtual Result<Extent> append(std::span<const ByteView> pieces, bool durable) = 0;
  // The size as this process knows it: as of the last call with others, and its own writes since.
  virtual Result<uint64_t> size() = 0;
  virtual Status sync() = 0;                    // protected and durable, on all members but those lost
  virtual Status set_size(uint64_t bytes) = 0;  // cuts or extends (extends with zeros)
  virtual Status close() = 0;                   // sync (durable or fast, by settings), then lets go

  // The rest has an answer that is right for every file; a layer may know a better one.

  // Zeros over the extent; a file that ends within it becomes longer.
  virtual Status zero(const Extent& extent);
  // The first byte from `offset` on that is data, or that lies in a hole, as lseek(2) has it. There is a hole at the end of each file. An
  // `offset` that is not before the end is ENXIO.
  enum class Stretch : uint8_t { data, hole };
  virtual Result<uint64_t> next(Stretch stretch, uint64_t offset);
  // fallocate(2), whose modes these are. Space is not set aside here: a full target counts as lost for the rows that it cannot take, and the
  // others bear it.
  virtual Status allocate(int mode, const Extent& extent);
  // At least so long, with zeros. Never shorter, also where others have made the file longer than this process knows.
  virtual Status lengthen(uint64_t bytes);
};

// The file of all processes that have opened it together. All of them make these calls, and those of FileLayer from sync() on, in one order.
class CollectiveFile : public FileLayer {
 public:
  // `more`: whether this rank has more to write in calls that follow at once (a large transfer in bounded pieces). It comes back true as long as any
  // rank has. Then all call again, with nothing where nothing is left.
  virtual Status write_all(std::span<const Extent> extents, ByteView data, bool& more) = 0;
  Status write_all(std::span<const Extent> extents, ByteView data) {
    bool more = false;
    return write_all(extents, data, more);
  }
  // Sees what other ranks have written by calls that have returned, synced or not. `more` as in write_all.
  virtual Result<uint64_t> read_all(std::span<const Extent> extents, ByteSpan into, bool& more) = 0;
  Result<uint64_t> read_all(std::span<const Extent> extents, ByteSpan into) {
    bool more = false;
    return read_all(extents, into, more);
  }
  virtual Status set_atomic(bool atomic) = 0;  // MPI_File_set_atomicity
  // Size agreed over all ranks, their unsynced writes included (MPI_SEEK_END, MPI_File_get_size after a collective write).
  virtual Result<uint64_t> agreed_size() = 0;
  Status lengthen(uint64_t bytes) override;  // MPI_File_preallocate
};

}  // namespace holdfast
