#include "file/coordinated/kept_writes.hpp"

namespace holdfast::file {

void KeptWrites::wrote(std::span<const Extent> extents, ByteView data, bool holds) {
  bytes_ += data.size() + extents.size_bytes();
  if (!holds) return;
  changes_.emplace_back([places = std::vector<Extent>(extents.begin(), extents.end()), bytes = Bytes(data.begin(), data.end())](FileLayer& below) {
    return below.write(places, bytes);
  });
}

void KeptWrites::changed(std::function<Status(FileLayer&)> change, bool holds) {
  bytes_ += sizeof change;
  if (holds) changes_.push_back(std::move(change));
}

Status KeptWrites::repeat(FileLayer& below) const {
  for (const auto& change : changes_) HF_TRY(change(below));
  return Status();
}

void KeptWrites::forget() {
  changes_.clear();
  bytes_ = 0;
}

}  // namespace holdfast::file
