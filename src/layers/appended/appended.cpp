#include "layers/appended/appended.hpp"

#include <utility>

namespace holdfast::layers {

namespace {

class Appended final : public AppendedFile {
 public:
  Appended(std::unique_ptr<FileLayer> below, uint64_t most, bool durable_close)
      : below_(std::move(below)), most_(most), durable_close_(durable_close) {}

  Status write(std::span<const Extent> extents, ByteView data) override {
    HF_TRY(place(false));
    return below_->write(extents, data);
  }
  bool is_empty() const override { return waiting_.empty(); }
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override {
    HF_TRY(place(false));
    return below_->read(extents, into);
  }
  Result<Extent> append(std::span<const ByteView> pieces, bool durable) override {
    auto end = size();
    if (!end) return end.status();
    const size_t before = waiting_.size();
    for (const ByteView& piece : pieces) waiting_.insert(waiting_.end(), piece.begin(), piece.end());
    const Extent taken{*end, waiting_.size() - before};
    if (at_once_ || durable || waiting_.size() >= most_) HF_TRY(place(durable));
    return taken;
  }
  Result<uint64_t> size() override {
    auto below = below_->size();
    if (below) *below += waiting_.size();
    return below;
  }
  Status sync() override {
    HF_TRY(place(true));
    return below_->sync();
  }
  Status set_size(uint64_t bytes) override {
    HF_TRY(place(false));
    return below_->set_size(bytes);
  }
  Status close() override {
    const Status placed = place(durable_close_);
    const Status closed = below_->close();
    return placed.ok() ? closed : placed;
  }
  Status zero(const Extent& extent) override {
    HF_TRY(place(false));
    return below_->zero(extent);
  }
  Result<uint64_t> next(Stretch stretch, uint64_t offset) override {
    HF_TRY(place(false));
    return below_->next(stretch, offset);
  }
  Status allocate(int mode, const Extent& extent) override {
    HF_TRY(place(false));
    return below_->allocate(mode, extent);
  }

  void place_at_once() override { at_once_ = true; }
  Status place(bool durable) override {
    if (waiting_.empty()) return Status();
    Bytes bytes = std::exchange(waiting_, Bytes());
    const ByteView all = bytes;
    HF_TRY(below_->append({&all, 1}, durable).status());
    bytes.clear();
    waiting_ = std::move(bytes);  // its memory, for the next ones
    return Status();
  }

 private:
  const std::unique_ptr<FileLayer> below_;
  const uint64_t most_;
  const bool durable_close_;
  bool at_once_ = false;
  Bytes waiting_;
};

}  // namespace

std::unique_ptr<AppendedFile> AppendedFile::make(std::unique_ptr<FileLayer> below, uint64_t most, bool durable_close) {
  return std::make_unique<Appended>(std::move(below), most, durable_close);
}

}  // namespace holdfast::layers
