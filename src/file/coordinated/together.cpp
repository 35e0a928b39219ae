#include "file/coordinated/together.hpp"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "exchange/agree.hpp"
#include "file/coordinated/names.hpp"
#include "file/part_files.hpp"
#include "layers/plain/plain_file.hpp"

namespace holdfast::file {

namespace {

using Mode = std::shared_ptr<std::atomic<bool>>;

// In atomic mode each call is one to the other ranks: the range from its first byte to its last is locked. A lock ends with its process.
class Atomic final : public FileLayer {
 public:
  Atomic(int fd, std::string path, Mode atomic) : fd_(fd), path_(std::move(path)), atomic_(std::move(atomic)), file_(layers::plain_file(fd, path_)) {}

  Status write(std::span<const Extent> extents, ByteView data) override {
    return locked(F_WRLCK, extents, [&] { return file_->write(extents, data); });
  }
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override {
    return locked(F_RDLCK, extents, [&] { return file_->read(extents, into); });
  }
  Result<Extent> append(std::span<const ByteView> pieces, bool durable) override { return file_->append(pieces, durable); }
  Result<uint64_t> size() override { return file_->size(); }
  Status sync() override { return file_->sync(); }
  Status set_size(uint64_t bytes) override { return file_->set_size(bytes); }
  Status close() override { return file_->close(); }
  Status zero(const Extent& extent) override { return file_->zero(extent); }
  Result<uint64_t> next(Stretch stretch, uint64_t offset) override { return file_->next(stretch, offset); }
  Status allocate(int mode, const Extent& extent) override { return file_->allocate(mode, extent); }

 private:
  template <class Call>
  auto locked(short kind, std::span<const Extent> extents, Call call) -> decltype(call()) {
    if (!*atomic_ || extents.empty()) return call();
    uint64_t begin = UINT64_MAX, end = 0;
    for (const Extent& extent : extents) begin = std::min(begin, extent.offset), end = std::max(end, extent.end());
    struct flock range {};
    range.l_type = kind, range.l_whence = SEEK_SET, range.l_start = off_t(begin), range.l_len = off_t(end - begin);
    HF_TRY(set(F_OFD_SETLKW, range));
    auto answer = call();
    range.l_type = F_UNLCK;
    HF_TRY(set(F_OFD_SETLK, range));
    return answer;
  }
  Status set(int command, struct flock& range) {
    while (raw::fcntl_lock(fd_, command, &range) != 0)
      if (errno != EINTR) return Status::from_errno(errno, path_ + ": atomic mode needs locks, and this file system refuses one");
    return Status();
  }

  const int fd_;
  const std::string path_;
  const Mode atomic_;
  const std::unique_ptr<FileLayer> file_;
};

class PlainTogether final : public CollectiveFile {
 public:
  PlainTogether(raw::Fd own, std::unique_ptr<Coordinated> file, Mode atomic, exchange::Exchange& ranks)
      : own_(std::move(own)), file_(std::move(file)), atomic_(std::move(atomic)), ranks_(ranks) {}

  Status write(std::span<const Extent> extents, ByteView data) override { return data.empty() ? Status() : file_->write(extents, data); }
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override {
    return into.empty() ? Result<uint64_t>(0) : file_->read(extents, into);
  }
  Status write_all(std::span<const Extent> extents, ByteView data, bool& more) override {
    const Status mine = write(extents, data);
    more = ranks_.all_max({more})[0] != 0;
    return exchange::agree(ranks_, mine);
  }
  Result<uint64_t> read_all(std::span<const Extent> extents, ByteSpan into, bool& more) override {
    const Status joined = file_->join();
    more = ranks_.all_max({more})[0] != 0;  // what the others have written by calls that have returned is there
    const Result<uint64_t> mine = joined.ok() ? read(extents, into) : joined;
    HF_TRY(exchange::agree(ranks_, mine.status()));
    return mine;
  }
  Result<Extent> append(std::span<const ByteView> pieces, bool durable) override { return file_->append(pieces, durable); }
  Result<uint64_t> size() override { return file_->size(); }
  Result<uint64_t> agreed_size() override {
    ranks_.barrier();
    const Result<uint64_t> mine = file_->size();
    HF_TRY(exchange::agree(ranks_, mine.status()));
    return uint64_t(ranks_.all_max({int64_t(*mine)})[0]);
  }
  Status sync() override { return exchange::agree(ranks_, file_->sync()); }
  Status set_size(uint64_t bytes) override {
    HF_TRY(exchange::agree(ranks_, file_->join()));  // what others have written before is cut, too
    return exchange::agree(ranks_, ranks_.rank() == 0 ? file_->set_size(bytes) : Status());
  }
  Status close() override { return exchange::agree(ranks_, file_->close()); }
  Status zero(const Extent& extent) override { return file_->zero(extent); }
  Result<uint64_t> next(Stretch stretch, uint64_t offset) override { return file_->next(stretch, offset); }
  Status allocate(int mode, const Extent& extent) override { return file_->allocate(mode, extent); }
  Status set_atomic(bool atomic) override {
    HF_TRY(exchange::agree(ranks_, file_->join()));
    *atomic_ = atomic;
    ranks_.barrier();
    return Status();
  }

 private:
  const raw::Fd own_;
  const std::unique_ptr<Coordinated> file_;
  const Mode atomic_;
  exchange::Exchange& ranks_;
};

}  // namespace

Result<std::unique_ptr<CollectiveFile>> open_plain_together(const std::string& path, int flags, mode_t mode, const ReplicaSettings& settings,
                                                            redundant::Replica& replica, exchange::Exchange& ranks) {
  Result<raw::Fd> own(Kind::internal, "not opened yet");
  if (ranks.rank() == 0) own = open_once(replica, path, flags, mode);
  HF_TRY(exchange::agree(ranks, ranks.rank() == 0 ? own.status() : Status()));
  if (ranks.rank() != 0) own = open_once(replica, path, flags & ~(O_CREAT | O_EXCL | O_TRUNC), mode);
  HF_TRY(exchange::agree(ranks, own.status()));
  const Mode atomic = std::make_shared<std::atomic<bool>>(false);
  Protocols protocols = choose(settings, replica, {.descriptor = own->get(), .writes = (flags & O_ACCMODE) != O_RDONLY});
  protocols.atomic = atomic;
  auto parts = (flags & O_ACCMODE) == O_RDONLY ? nullptr : parts_of(own->get(), protocols, replica);
  auto file = coordinated(std::make_unique<Atomic>(own->get(), path, atomic), replica, subject_of_next_open(replica, path), path,
                          std::move(protocols), std::move(parts));
  return std::unique_ptr<CollectiveFile>(std::make_unique<PlainTogether>(std::move(*own), std::move(file), atomic, ranks));
}

}  // namespace holdfast::file
