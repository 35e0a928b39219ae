#include "base/file_layer.hpp"

#include <linux/falloc.h>

#include <algorithm>
#include <cerrno>

namespace holdfast {

Status FileLayer::zero(const Extent& extent) {
  constexpr uint64_t most_at_once = 1 << 20;
  const Bytes zeros(std::min(extent.length, most_at_once));
  for (uint64_t done = 0; done < extent.length;) {
    const Extent piece{extent.offset + done, std::min<uint64_t>(zeros.size(), extent.length - done)};
    HF_TRY(write({&piece, 1}, ByteView(zeros).first(piece.length)));
    done += piece.length;
  }
  return Status();
}

Result<uint64_t> FileLayer::next(Stretch stretch, uint64_t offset) {
  auto end = size();
  if (!end) return end;
  if (offset >= *end) return Status(Kind::invalid, "", ENXIO);
  return stretch == Stretch::data ? offset : *end;
}

Status FileLayer::allocate(int mode, const Extent& extent) {
  auto end = size();
  if (!end) return end.status();
  const bool zeros = mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE);
  if (zeros && extent.offset < *end) HF_TRY(zero({extent.offset, std::min(extent.end(), *end) - extent.offset}));
  return mode & FALLOC_FL_KEEP_SIZE ? Status() : lengthen(extent.end());
}

Status FileLayer::lengthen(uint64_t bytes) {
  auto end = size();
  if (!end) return end.status();
  return bytes <= *end ? Status() : set_size(bytes);
}

Status CollectiveFile::lengthen(uint64_t bytes) {
  auto end = agreed_size();
  if (!end) return end.status();
  return bytes <= *end ? Status() : set_size(bytes);
}

}  // namespace holdfast
