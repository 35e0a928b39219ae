#include "cli/files/copy.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/plausible.hpp"

namespace holdfast::cli {

namespace {
// Whole rows, and enough of them that every target is busy.
constexpr uint64_t piece_bytes_wanted = 16 << 20;

uint64_t piece_bytes(const engine::ProtectedFile& file) {
  const uint64_t row = file.located().manifest.geometry.row_bytes();
  return std::max<uint64_t>(1, piece_bytes_wanted / row) * row;
}
}  // namespace

Result<file::Alone> open_to_read(const std::string& path, const Settings& settings) {
  auto found = file::find(path, {}, settings);
  if (!found) return found.status();
  HF_TRY(engine::check_plausible(found->located, settings));
  return file::Alone::open(std::move(*found), {}, settings);
}

Status stopped() { return Status(Kind::internal, "stopped"); }

Status read_through(engine::ProtectedFile& file, const engine::Progress& progress, const Sink& sink) {
  const auto whole = file.size();
  if (!whole) return whole.status();
  const uint64_t size = *whole;
  Bytes buffer(std::min(piece_bytes(file), std::max<uint64_t>(size, 1)));
  for (uint64_t offset = 0; offset < size;) {
    const Extent extent{offset, std::min<uint64_t>(buffer.size(), size - offset)};
    const ByteSpan piece(buffer.data(), extent.length);
    auto got = file.read({&extent, 1}, piece);
    if (!got) return got.status();
    if (*got != extent.length) return Status(Kind::io, "the file became shorter while it was read: run it again");
    HF_TRY(sink(offset, piece));
    offset = extent.end();
    if (!progress(offset, size)) return stopped();
  }
  return Status();
}

Status copy_out(engine::ProtectedFile& file, int fd, const std::string& name, const engine::Progress& progress) {
  HF_TRY(read_through(file, progress, [&](uint64_t offset, ByteView piece) {
    if (all_zero(piece)) return Status();
    if (::lseek(fd, off_t(offset), SEEK_SET) < 0) return Status::from_errno(errno, name + " cannot be written");
    return write_whole(fd, piece, name);
  }));
  const auto size = file.size();
  if (!size) return size.status();
  if (::ftruncate(fd, off_t(*size)) != 0) return Status::from_errno(errno, name + " cannot be given its size");
  if (::fsync(fd) != 0) return Status::from_errno(errno, name + " cannot be synced");
  return Status();
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Status write_whole(int fd, ByteView bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return Status::from_errno(errno, name + " cannot be written");
    bytes = bytes.subspan(size_t(wrote));
  }
  return Status();
}

Result<size_t> read_whole(int fd, ByteSpan into, const std::string& name) {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::read(fd, into.data() + done, into.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::from_errno(errno, name + " cannot be read");
    if (got == 0) break;
    done += size_t(got);
  }
  return done;
}

bool all_zero(ByteView bytes) {
  return bytes.empty() || (bytes[0] == std::byte(0) && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace holdfast::cli
