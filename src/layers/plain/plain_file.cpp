#include "layers/plain/plain_file.hpp"

#include <algorithm>

namespace holdfast::layers {

namespace {

constexpr size_t most_at_once = 1 << 30;  // the kernel takes a little less than 2 GiB in one call

class PlainFile final : public FileLayer {
 public:
  PlainFile(raw::Fd file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

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
    struct stat now{};
    return raw::fstat(file_.get(), &now) == 0 ? uint64_t(now.st_size) : 0;
  }
  Status sync() override { return raw::fdatasync(file_.get()) == 0 ? Status() : failed("fdatasync"); }
  Status set_size(uint64_t bytes) override { return raw::ftruncate(file_.get(), bytes) == 0 ? Status() : failed("ftruncate"); }
  // Where close reports an earlier failure (NFS, quotas) it must be heard.
  Status close() override { return !file_ || raw::close(file_.release()) == 0 ? Status() : failed("close"); }

 private:
  Status failed(const char* call) const { return Status::from_errno(errno, name_ + ": " + call); }

  Status write_one(uint64_t at, ByteView data) {
    while (!data.empty()) {
      const ssize_t done = raw::pwrite(file_.get(), data.data(), std::min(data.size(), most_at_once), at);
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
      const ssize_t got = raw::pread(file_.get(), into.data() + have, std::min(into.size() - have, most_at_once), at + have);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failed("read");
      if (got == 0) break;
      have += uint64_t(got);
    }
    return have;
  }

  raw::Fd file_;
  std::string name_;
};

}  // namespace

std::unique_ptr<FileLayer> plain_file(raw::Fd file, std::string name) {
  return std::make_unique<PlainFile>(std::move(file), std::move(name));
}

}  // namespace holdfast::layers
