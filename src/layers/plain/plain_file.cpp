#include "layers/plain/plain_file.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/meter.hpp"
#include "base/own_numbers.hpp"

namespace holdfast::layers {

namespace {

constexpr uint64_t at_position = ~uint64_t(0);  // of the descriptor, which is moved behind what was written
constexpr size_t most_at_once = 1 << 30;        // the kernel takes a little less than 2 GiB in one call

class PlainFile final : public FileLayer {
 public:
  PlainFile(int descriptor, std::string name) : fd_(descriptor), name_(std::move(name)) {}

  Status write(std::span<const Extent> extents, ByteView data) override {
    for (const Extent& extent : extents) {
      HF_TRY(write_one(extent.offset, data.first(extent.length)));
      data = data.subspan(extent.length);
    }
    return Status();
  }
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override {
    uint64_t before_end = 0;
    bool past_end = false;
    for (const Extent& extent : extents) {
      auto got = read_one(extent.offset, into.first(extent.length));
      if (!got) return got;
      into = into.subspan(extent.length);
      if (!past_end) before_end += *got;
      past_end |= *got < extent.length;
    }
    return before_end;
  }
  // Several processes may append to one file, and each one's bytes must come behind all others': only the kernel can see to that.
  Result<Extent> append(std::span<const ByteView> pieces, bool durable) override {
    std::vector<iovec> from;
    for (const ByteView& piece : pieces) from.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
    const ssize_t done = metered(&Meter::write_calls, &Meter::write_ns, &Meter::write_bytes,
                                 [&] { return raw::pwritev2(fd_, from.data(), int(from.size()), at_position, RWF_APPEND); });
    if (done < 0) return Status(Kind::invalid, "", errno);
    if (durable) HF_TRY(sync());
    const off_t end = raw::lseek(fd_, 0, SEEK_CUR);  // others may have appended since
    if (end < 0) return failed("lseek");
    return Extent{uint64_t(end - done), uint64_t(done)};
  }
  Result<uint64_t> size() override {
    struct stat now {};
    return raw::fstat(fd_, &now) == 0 ? Result<uint64_t>(uint64_t(now.st_size)) : failed("fstat");
  }
  Status sync() override {
    return metered(&Meter::sync_calls, &Meter::sync_ns, nullptr, [&] { return raw::fdatasync(fd_); }) == 0 ? Status() : failed("fdatasync");
  }
  Status set_size(uint64_t bytes) override { return raw::ftruncate(fd_, bytes) == 0 ? Status() : failed("ftruncate"); }
  Status close() override { return Status(); }
  Result<uint64_t> next(Stretch stretch, uint64_t offset) override {
    const off_t found = raw::lseek(fd_, int64_t(offset), stretch == Stretch::data ? SEEK_DATA : SEEK_HOLE);  // nobody uses its position
    return found < 0 ? Result<uint64_t>(Status(Kind::invalid, "", errno)) : uint64_t(found);
  }
  Status allocate(int mode, const Extent& extent) override {
    return raw::fallocate(fd_, mode, extent.offset, extent.length) == 0 ? Status() : Status(Kind::invalid, "", errno);
  }

 private:
  Status failed(const char* call) const { return Status::from_errno(errno, name_ + ": " + call); }

  Status write_one(uint64_t at, ByteView data) {
    while (!data.empty()) {
      const ssize_t done = metered(&Meter::write_calls, &Meter::write_ns, &Meter::write_bytes,
                                   [&] { return raw::pwrite(fd_, data.data(), std::min(data.size(), most_at_once), at); });
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return failed("write");
      if (done == 0) return Status(Kind::io, name_ + ": write: nothing was taken");
      at += uint64_t(done);
      data = data.subspan(size_t(done));
    }
    return Status();
  }
  Result<uint64_t> read_one(uint64_t at, ByteSpan into) {
    uint64_t have = 0;
    while (have < into.size()) {
      const ssize_t got = metered(&Meter::read_calls, &Meter::read_ns, &Meter::read_bytes,
                                  [&] { return raw::pread(fd_, into.data() + have, std::min(into.size() - have, most_at_once), at + have); });
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failed("read");
      if (got == 0) break;
      have += uint64_t(got);
    }
    return have;
  }

  const int fd_;
  std::string name_;
};

}  // namespace

std::unique_ptr<FileLayer> plain_file(int descriptor, std::string name) { return std::make_unique<PlainFile>(descriptor, std::move(name)); }

raw::Fd with_all_rights(raw::Fd file) {
  raw::Fd both(raw::openat(AT_FDCWD, fmt::format("/proc/self/fd/{}", file.get()).c_str(), O_RDWR | O_CLOEXEC));
  return raw::out_of_the_way(both ? std::move(both) : std::move(file));
}

raw::Fd open_again(const std::string& path, bool to_write) {
  raw::Fd file(raw::openat(AT_FDCWD, path.c_str(), (to_write ? O_RDWR : O_RDONLY) | O_CLOEXEC));
  if (!file && to_write && errno == EACCES) file = raw::Fd(raw::openat(AT_FDCWD, path.c_str(), O_WRONLY | O_CLOEXEC));
  return raw::out_of_the_way(std::move(file));
}

}  // namespace holdfast::layers
