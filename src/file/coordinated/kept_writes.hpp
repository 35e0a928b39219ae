// What was written to a file since its last sync, in its order. A leader that is lost may have left a part of it undone.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "base/file_layer.hpp"

namespace holdfast::file {

class KeptWrites {
 public:
  static constexpr uint64_t most_bytes = 64ull << 20;

  explicit KeptWrites(uint64_t most = most_bytes) : most_(most) {}
  // `holds`: this replica may have to repeat it; the leader only counts, so that all know alike when it is too much.
  void wrote(std::span<const Extent> extents, ByteView data, bool holds);
  // Any other change, which can be made twice.
  void changed(std::function<Status(FileLayer&)> change, bool holds);
  bool is_too_much() const { return bytes_ > most_; }
  // Never an older byte over a newer one that may be there, but for what was cut off in between.
  Status repeat(FileLayer& below) const;
  void forget();

 private:
  struct Change {
    std::vector<Extent> places;  // of a write
    Bytes bytes;
    std::function<Status(FileLayer&)> other;  // where it is no write
  };
  using Changes = std::vector<Change>;
  static Status write_newest(Changes::const_iterator first, Changes::const_iterator last, FileLayer& below);

  const uint64_t most_;
  Changes changes_;
  uint64_t bytes_ = 0;
};

}  // namespace holdfast::file
