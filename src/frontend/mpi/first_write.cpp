#include "frontend/mpi/first_write.hpp"

#include <atomic>
#include <mutex>
#include <utility>

namespace holdfast::frontend {

namespace {

class FirstWrite final : public CollectiveFile {
 public:
  FirstWrite(std::unique_ptr<CollectiveFile> file, BeforeWrite before) : file_(std::move(file)), before_(std::move(before)) {}

  Status write(std::span<const Extent> extents, ByteView data) override {
    if (!data.empty()) HF_TRY(writes());
    return file_->write(extents, data);
  }
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override { return file_->read(extents, into); }
  Result<Extent> append(std::span<const ByteView> pieces, bool durable) override {
    HF_TRY(writes());
    return file_->append(pieces, durable);
  }
  Result<uint64_t> size() override { return file_->size(); }
  Status sync() override { return file_->sync(); }
  Status set_size(uint64_t bytes) override {
    const Status mine = writes(true);
    const Status set = file_->set_size(bytes);
    return mine ? set : mine;
  }
  Status close() override { return file_->close(); }
  Status zero(const Extent& extent) override {
    HF_TRY(writes());
    return file_->zero(extent);
  }
  Result<uint64_t> next(Stretch stretch, uint64_t offset) override { return file_->next(stretch, offset); }
  Status allocate(int mode, const Extent& extent) override {
    HF_TRY(writes());
    return file_->allocate(mode, extent);
  }
  Status lengthen(uint64_t bytes) override {
    const Status mine = writes();
    const Status made = file_->lengthen(bytes);
    return mine ? made : mine;
  }

  // The other ranks wait for this one in the call, also where it has nothing to bring.
  using CollectiveFile::write_all;
  Status write_all(std::span<const Extent> extents, ByteView data, bool& more) override {
    const Status mine = data.empty() ? Status() : writes();
    if (mine) return file_->write_all(extents, data, more);
    more = false;
    const Status theirs = file_->write_all({}, {}, more);
    return theirs ? mine : theirs;
  }
  using CollectiveFile::read_all;
  Result<uint64_t> read_all(std::span<const Extent> extents, ByteSpan into, bool& more) override { return file_->read_all(extents, into, more); }
  Status set_atomic(bool atomic) override { return file_->set_atomic(atomic); }
  Result<uint64_t> agreed_size() override { return file_->agreed_size(); }

 private:
  Status writes(bool resizes = false) {
    if (is_done_.load(std::memory_order_acquire)) return {};
    std::lock_guard lock(mutex_);
    if (is_done_) return {};
    HF_TRY(before_(resizes));
    is_done_ = true;
    return {};
  }

  const std::unique_ptr<CollectiveFile> file_;
  const BeforeWrite before_;
  std::atomic<bool> is_done_{false};
  std::mutex mutex_;
};

}  // namespace

std::unique_ptr<CollectiveFile> before_first_write(std::unique_ptr<CollectiveFile> file, BeforeWrite before) {
  return std::make_unique<FirstWrite>(std::move(file), std::move(before));
}

}  // namespace holdfast::frontend
