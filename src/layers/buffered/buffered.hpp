// The buffered layer (IOBUF's idea: a few large buffers between a program's small calls and the file system, with write-behind
// and read-ahead). See README.md for what it promises and docs/buffering.md for the user's side.
#pragma once
#include <memory>

#include "base/file_layer.hpp"
#include "layers/buffered/background.hpp"
#include "layers/buffered/begun_writes.hpp"

namespace holdfast::layers {

struct BufferPlan {
  int buffers = 4;
  uint64_t bytes = 16ull << 20;  // each; rounded up to a multiple of `align`
  uint64_t align = 1;            // bytes of a row or a stripe: buffers begin and end there
  bool read_ahead = true;        // false for files that cannot be read
  enum class Flush { when_full, when_needed };
  Flush flush = Flush::when_full;  // at once in the background, or only when its place is needed: until then it may be written again
  uint64_t flush_after_ms = 0;     // what has waited that long is written in the background, in whatever buffers; 0: it waits
  bool sync_after = false;         // below, bytes outlive this process only by a sync: that is made as well then
};

// Since the file was opened.
struct BufferCounts {
  uint64_t gathered = 0;                       // the program's writes that went into a buffer
  uint64_t served = 0;                         // its reads that came out of one
  uint64_t prefetches = 0;                     // windows read before they were asked for
  uint64_t preflushes = 0;                     // buffers written while the program went on
  uint64_t flushes = 0;                        // buffers written while it waited
  uint64_t writes_below = 0, reads_below = 0;  // calls
};

class BufferedFile : public FileLayer {
 public:
  // `begun`: of the layer below, where that is how full buffers are written. All that happens there then follows from the calls of this layer, whatever takes
  // how long.
  static Result<std::unique_ptr<BufferedFile>> make(std::unique_ptr<FileLayer> below, const BufferPlan& plan, Background& background,
                                                    BegunWrites* begun = nullptr);

  // Every write that has returned is below; nothing is made durable (sync() does both).
  virtual Status flush() = 0;
  // flush(), and what was read is asked for anew: another process may have changed it.
  virtual Status forget() = 0;
  // forget(), and from now on nothing is kept: each call goes below before it returns.
  virtual Status write_through() = 0;
  // The last failure of a delayed write if there was one since `seen` (0 at the beginning), which is brought up to date. What
  // failed stays here and is tried again by every flush.
  virtual Status failure_since(uint64_t& seen) = 0;
  virtual BufferCounts counts() = 0;
};

}  // namespace holdfast::layers
