// What a layer below offers that writes beside its caller, and tells of it at calls of its caller's choice.
#pragma once
#include <span>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace holdfast::layers {

class BegunWrites {
 public:
  // What has come of the write that was begun before. Where that has failed the new one is not begun. Else `data` stays as it is until the next call here.
  virtual Status begin_write(std::span<const Extent> extents, ByteView data) = 0;
  // Likewise, and no new one is begun.
  virtual Status end_write() = 0;

 protected:
  ~BegunWrites() = default;
};

}  // namespace holdfast::layers
