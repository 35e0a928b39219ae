// Room for bytes that come from elsewhere.
#pragma once
#include <memory>

#include "base/bytes.hpp"

namespace holdfast {

// Room that somebody else fills, and says how much of it: unlike Bytes it is not set to zeros before.
class Room {
 public:
  explicit Room(size_t bytes) : data_(std::make_unique_for_overwrite<std::byte[]>(bytes)), size_(bytes) {}
  std::byte* data() { return data_.get(); }
  size_t size() const { return size_; }
  ByteView first(size_t bytes) const { return ByteView(data_.get(), size_).first(bytes); }

 private:
  std::unique_ptr<std::byte[]> data_;
  size_t size_;
};

}  // namespace holdfast
