#include "engine/copy_whole.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace holdfast::engine {

namespace {

constexpr uint64_t copied_at_once = 16 << 20;

bool is_zero(ByteView bytes) { return bytes[0] == std::byte(0) && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0; }

}  // namespace

Status copy_whole(FileLayer& from, uint64_t size, ProtectedFile& to, const std::string& from_path, const Progress& progress) {
  const uint64_t row = to.located().manifest.geometry.row_bytes();
  Bytes buffer(std::min(std::max<uint64_t>(1, copied_at_once / row) * row, std::max<uint64_t>(size, 1)));
  for (uint64_t offset = 0; offset < size;) {
    const Extent extent{offset, std::min<uint64_t>(buffer.size(), size - offset)};
    auto got = from.read({&extent, 1}, ByteSpan(buffer).first(extent.length));
    if (!got) return got.status();
    if (*got != extent.length) return Status(Kind::busy, from_path + " became shorter while it was read; try again", EBUSY);
    const ByteView piece(buffer.data(), extent.length);
    if (!is_zero(piece)) HF_TRY(to.write({&extent, 1}, piece));
    offset = extent.end();
    if (progress && !progress(offset, size)) return Status(Kind::internal, "stopped", ECANCELED);
  }
  return to.set_size(size);
}

}  // namespace holdfast::engine
