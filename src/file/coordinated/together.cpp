#include "file/coordinated/together.hpp"

#include <algorithm>

#include "exchange/agree.hpp"
#include "file/coordinated/names.hpp"
#include "layers/plain/plain_file.hpp"

namespace holdfast::file {

namespace {

class PlainTogether final : public CollectiveFile {
 public:
  PlainTogether(raw::Fd own, std::unique_ptr<FileLayer> file, exchange::Exchange& ranks)
      : own_(std::move(own)), file_(std::move(file)), ranks_(ranks) {}

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
    more = ranks_.all_max({more})[0] != 0;  // what the others have written by calls that have returned is there
    const Result<uint64_t> mine = read(extents, into);
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
    ranks_.barrier();
    return exchange::agree(ranks_, ranks_.rank() == 0 ? file_->set_size(bytes) : Status());
  }
  Status close() override { return exchange::agree(ranks_, file_->close()); }
  Status zero(const Extent& extent) override { return file_->zero(extent); }
  Result<uint64_t> next(Part part, uint64_t offset) override { return file_->next(part, offset); }
  Status allocate(int mode, const Extent& extent) override { return file_->allocate(mode, extent); }
  Status set_atomic(bool atomic) override {
    return atomic ? Status(Kind::unsupported, "atomic mode is not there for plain files under --replicas; protect the file, or leave the mode out")
                  : Status();
  }

 private:
  const raw::Fd own_;
  const std::unique_ptr<FileLayer> file_;
  exchange::Exchange& ranks_;
};

}  // namespace

Result<std::unique_ptr<CollectiveFile>> open_plain_together(const std::string& path, int flags, mode_t mode, redundant::Replica& replica,
                                                            exchange::Exchange& ranks) {
  Result<raw::Fd> own(Kind::internal, "not opened yet");
  if (ranks.rank() == 0) own = open_once(replica, path, flags, mode);
  HF_TRY(exchange::agree(ranks, ranks.rank() == 0 ? own.status() : Status()));
  if (ranks.rank() != 0) own = open_once(replica, path, flags & ~(O_CREAT | O_EXCL | O_TRUNC), mode);
  HF_TRY(exchange::agree(ranks, own.status()));
  auto file = coordinated(layers::plain_file(own->get(), path), replica, subject_of_next_open(path), path);
  return std::unique_ptr<CollectiveFile>(std::make_unique<PlainTogether>(std::move(*own), std::move(file), ranks));
}

}  // namespace holdfast::file
