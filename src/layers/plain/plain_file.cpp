#include "layers/plain/plain_file.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/meter.hpp"
#include "base/own_numbers.hpp"

namespace holdfast::layers {

namespace {

constexpr size_t most_at_once = 1 << 30;  // the kernel takes a little less than 2 GiB in one call

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
  uint64_t size() override {
    struct stat now {};
    return raw::fstat(fd_, &now) == 0 ? uint64_t(now.st_size) : 0;
  }
  Status sync() override {
    return metered(&Meter::sync_calls, &Meter::sync_ns, nullptr, [&] { return raw::fdatasync(fd_); }) == 0 ? Status() : failed("fdatasync");
  }
  Status set_size(uint64_t bytes) override { return raw::ftruncate(fd_, bytes) == 0 ? Status() : failed("ftruncate"); }
  Status close() override { return Status(); }

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

int64_t append_to(int descriptor, std::span<const iovec> from) {
  return metered(&Meter::write_calls, &Meter::write_ns, &Meter::write_bytes,
                 [&] { return raw::pwritev2(descriptor, from.data(), int(from.size()), 0, RWF_APPEND); });
}

int allocate_in(int descriptor, int mode, uint64_t offset, uint64_t bytes) { return raw::fallocate(descriptor, mode, offset, bytes); }

}  // namespace holdfast::layers
