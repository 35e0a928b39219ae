// What an open file is to those above: one of these on top of another. The top of a process's own file is whatever its
// open has put there; the bottom is the protected file.
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
  // The size as this process knows it: as of the last call with others, and its own writes since.
  virtual uint64_t size() = 0;
  virtual Status sync() = 0;                    // protected and durable, on all members but those lost
  virtual Status set_size(uint64_t bytes) = 0;  // cuts or extends (extends with zeros)
  virtual Status close() = 0;                   // sync (durable or fast, by settings), then lets go
};

}  // namespace holdfast
