#include "layers/buffered/buffered.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/meter.hpp"
#include "layers/buffered/window_buffer.hpp"

namespace holdfast::layers {

namespace {

constexpr uint64_t first_read_ahead = 256 << 10;  // doubled with every read that goes on where the last one ended

using Lock = std::unique_lock<std::mutex>;

class Buffered final : public BufferedFile {
 public:
  Buffered(std::unique_ptr<FileLayer> below, uint64_t size, const BufferPlan& plan, Background& background, BegunWrites* begun)
      : below_(std::move(below)),
        begun_(begun),
        background_(background),
        bytes_(round_up(std::max<uint64_t>(plan.bytes, 1), plan.align)),
        most_(size_t(std::max(plan.buffers, 1))),
        reads_ahead_(plan.read_ahead),
        plan_(plan),
        end_(size) {}
  ~Buffered() override {
    if (tether_) {
      std::lock_guard guard(tether_->mutex);
      tether_->file = nullptr;
    }
    Lock lock(mutex_);
    if (begun_) below_.reset();  // which waits for what is under way
    else wait_for_background(lock);
  }

  Status write(std::span<const Extent> extents, ByteView data) override {
    Lock lock(mutex_);
    for (const Extent& extent : extents) {
      HF_TRY(write_one(lock, extent.offset, data.first(extent.length)));
      data = data.subspan(extent.length);
    }
    return Status();
  }

  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override {
    Lock lock(mutex_);
    const auto beyond = [&](const Extent& extent) { return extent.end() > end_; };
    if (std::any_of(extents.begin(), extents.end(), beyond)) HF_TRY(look_at_end());
    const uint64_t end = end_;
    uint64_t before_end = 0;
    bool past_end = false;
    for (const Extent& extent : extents) {
      const uint64_t there = extent.offset < end ? std::min(extent.length, end - extent.offset) : 0;
      HF_TRY(read_one(lock, extent.offset, into.first(there)));
      into = into.subspan(extent.length);
      if (!past_end) before_end += there;
      past_end |= there < extent.length;
    }
    return before_end;
  }

  Result<uint64_t> size() override {
    Lock lock(mutex_);
    HF_TRY(look_at_end());
    return end_;
  }
  // Where others may append, too, what is kept here is not in the way.
  Result<Extent> append(std::span<const ByteView> pieces, bool durable) override {
    return unbuffered([&] { return below_->append(pieces, durable); });
  }
  Result<uint64_t> next(Stretch stretch, uint64_t offset) override {
    Lock lock(mutex_);
    HF_TRY(flush_all(lock));
    return below_->next(stretch, offset);
  }
  Status allocate(int mode, const Extent& extent) override {
    return unbuffered([&] { return below_->allocate(mode, extent); });
  }

  Status set_size(uint64_t bytes) override {
    Lock lock(mutex_);
    HF_TRY(forget_all(lock));
    const Status set = below_->set_size(bytes);
    HF_TRY(take_end_of_below());
    return set;
  }
  Status flush() override {
    Lock lock(mutex_);
    return flush_all(lock);
  }
  Status forget() override {
    Lock lock(mutex_);
    return forget_all(lock);
  }
  Status write_through() override {
    Lock lock(mutex_);
    through_ = true;
    return forget_all(lock);
  }
  Status sync() override {
    Lock lock(mutex_);
    const Status flushed = flush_all(lock);
    const Status synced = below_->sync();
    waiting_since_.reset();
    return flushed.ok() ? synced : flushed;
  }
  Status close() override {
    Lock lock(mutex_);
    const Status flushed = flush_all(lock);
    const Status closed = below_->close();
    return flushed.ok() ? closed : flushed;
  }

  Status failure_since(uint64_t& seen) override {
    Lock lock(mutex_);
    if (seen == failures_) return Status();
    seen = failures_;
    return failure_;
  }
  BufferCounts counts() override {
    Lock lock(mutex_);
    return counts_;
  }

 private:
  // What work of a later time holds in the place of the file, which may be gone by then. Its lock comes before the file's.
  struct Tether {
    explicit Tether(Buffered* whose) : file(whose) {}
    std::mutex mutex;
    Buffered* file;
  };

  // Where full buffers are begun below: what has come of the last one. Before each other call there, and where its buffer is needed.
  void end_begun() {
    if (under_way_) settle_begun(begun_->end_write());
  }
  void settle_begun(const Status& status) {
    if (WindowBuffer* const buffer = std::exchange(under_way_, nullptr)) settled(*buffer, status);
    else if (!status.ok()) failed(status);
  }
  void begin_below(WindowBuffer& buffer) {
    const Extent extent{buffer.begin(), bytes_};
    const Status before = begun_->begin_write({&extent, 1}, buffer.bytes(0, bytes_));
    settle_begun(before);
    if (!before.ok()) return;  // it is written when room is needed
    ++counts_.writes_below, ++counts_.preflushes;
    if (current_meter) Meter::add(current_meter->preflushes, 1);
    buffer.busy = WindowBuffer::Busy::writing;
    under_way_ = &buffer;
  }

  WindowBuffer* find(uint64_t window) {
    for (auto& buffer : buffers_)
      if (buffer->window() == window) return buffer.get();
    return nullptr;
  }

  // The buffer that stands for this window, with the background out of it; null for one that nobody has to wait for.
  Result<WindowBuffer*> buffer_for(Lock& lock, uint64_t window) {
    while (true) {
      if (WindowBuffer* found = find(window)) {
        if (found->busy == WindowBuffer::Busy::no) return found;
      } else if (WindowBuffer* room = clean_room()) {
        room->stand_for(window);
        return room;
      } else if (!background_works()) {
        HF_TRY(flush_now(*least_used()));
        continue;
      }
      if (under_way_) end_begun();
      else ended_.wait(lock);
    }
  }
  // A new buffer, or one whose bytes are all below.
  WindowBuffer* clean_room() {
    if (buffers_.size() < most_) {
      buffers_.push_back(std::make_unique<WindowBuffer>(bytes_));
      if (current_meter)
        Meter::raise(current_meter->buffers_used, buffers_.size()), Meter::raise(current_meter->buffer_bytes, buffers_.size() * bytes_);
      return buffers_.back().get();
    }
    WindowBuffer* oldest = nullptr;
    for (auto& buffer : buffers_)
      if (buffer->busy == WindowBuffer::Busy::no && !buffer->dirty() && (!oldest || buffer->used < oldest->used)) oldest = buffer.get();
    return oldest;
  }
  WindowBuffer* least_used() {
    return std::min_element(buffers_.begin(), buffers_.end(), [](auto& a, auto& b) { return a->used < b->used; })->get();
  }
  bool background_works() const {
    return syncing_ || std::any_of(buffers_.begin(), buffers_.end(), [](auto& buffer) { return buffer->busy != WindowBuffer::Busy::no; });
  }
  void wait_for_background(Lock& lock) {
    ended_.wait(lock, [&] { return !background_works(); });
  }

  // Bytes from `at` on that are whole windows for which there is no buffer.
  uint64_t unbuffered_windows(uint64_t at, uint64_t count) {
    uint64_t run = 0;
    if (at % bytes_ == 0)
      while (run + bytes_ <= count && !find((at + run) / bytes_)) run += bytes_;
    return run;
  }

  // --- writing
  // Behind the end and at once very far: it may be where the file below cannot reach, and its error is this call's.
  bool is_a_far_leap(uint64_t at, uint64_t count) const {
    constexpr uint64_t far = uint64_t{1} << 42;
    return at > end_ && at + count > far;
  }
  Status write_one(Lock& lock, uint64_t at, ByteView data) {
    while (!data.empty()) {
      const uint64_t direct = through_ || is_a_far_leap(at, data.size()) ? data.size() : unbuffered_windows(at, data.size());
      const uint64_t count = direct ? direct : std::min<uint64_t>(data.size(), bytes_ - at % bytes_);
      HF_TRY(direct ? write_below(at, data.first(count)) : gather(lock, at, data.first(count)));
      at += count;
      data = data.subspan(count);
    }
    return Status();
  }
  Status write_below(uint64_t at, ByteView data) {
    end_begun();
    ++counts_.writes_below;
    const Extent extent{at, data.size()};
    HF_TRY(below_->write(std::span(&extent, 1), data));
    end_ = std::max(end_, extent.end());
    if (plan_.sync_after) begin_to_wait();
    return Status();
  }
  Status gather(Lock& lock, uint64_t at, ByteView data) {
    auto buffer = buffer_for(lock, at / bytes_);
    if (!buffer) return buffer.status();
    (*buffer)->put(at % bytes_, data);
    (*buffer)->used = ++clock_;
    ++counts_.gathered;
    end_ = std::max(end_, at + data.size());
    begin_to_wait();
    if (plan_.flush == BufferPlan::Flush::when_full && (*buffer)->full()) write_behind(**buffer);
    return Status();
  }
  void write_behind(WindowBuffer& buffer) {
    if (begun_) return begin_below(buffer);
    buffer.busy = WindowBuffer::Busy::writing;
    const bool put_off = background_.submit([this, &buffer] {
      uint64_t calls = 0;
      const Status status = write_dirty(buffer, calls);
      Lock lock(mutex_);
      counts_.writes_below += calls;
      ++counts_.preflushes;
      if (current_meter) Meter::add(current_meter->preflushes, 1);
      settled(buffer, status);
    });
    // Nobody to do it: it stays dirty, and is written when room is needed.
    if (!put_off) buffer.busy = WindowBuffer::Busy::no;
  }
  Status write_dirty(WindowBuffer& buffer, uint64_t& calls) {
    for (const Extent& range : buffer.dirty_ranges()) {
      const Extent extent{buffer.begin() + range.offset, range.length};
      ++calls;
      HF_TRY(below_->write(std::span(&extent, 1), buffer.bytes(range.offset, range.length)));
    }
    return Status();
  }
  void settled(WindowBuffer& buffer, const Status& status) {
    if (status.ok()) buffer.clean();
    else failed(status);
    buffer.busy = WindowBuffer::Busy::no;
    ended_.notify_all();
  }
  void failed(const Status& status) {
    failure_ = status;
    ++failures_;
  }

  // --- what waits no longer than a time
  void begin_to_wait() {
    if (plan_.flush_after_ms == 0 || waiting_since_) return;
    waiting_since_ = background_.now();
    if (timed_) return;
    if (!tether_) tether_ = std::make_shared<Tether>(this);
    timed_ = background_.submit_after(patience(), [tether = tether_] {
      std::lock_guard guard(tether->mutex);
      return tether->file ? tether->file->write_in_time() : Background::Milliseconds::zero();
    });
  }
  Background::Milliseconds patience() const { return Background::Milliseconds(plan_.flush_after_ms); }
  // In the background; returns when to look again. What fails is not tried again for the time's sake: that is for whoever writes or
  // flushes next, who is also told.
  Background::Milliseconds write_in_time() {
    Lock lock(mutex_);
    if (waiting_since_) {
      const auto age = background_.now() - *waiting_since_;
      if (age < patience()) return patience() - age;
      waiting_since_.reset();
      write_all_dirty(lock);
    }
    timed_ = waiting_since_.has_value();
    return timed_ ? patience() : Background::Milliseconds::zero();
  }
  void write_all_dirty(Lock& lock) {
    std::vector<WindowBuffer*> taken;
    for (auto& buffer : buffers_)
      if (buffer->busy == WindowBuffer::Busy::no && buffer->dirty()) taken.push_back(buffer.get());
    for (WindowBuffer* buffer : taken) buffer->busy = WindowBuffer::Busy::writing;
    for (WindowBuffer* buffer : taken) {
      lock.unlock();
      uint64_t calls = 0;
      const Status status = write_dirty(*buffer, calls);
      lock.lock();
      counts_.writes_below += calls;
      ++counts_.preflushes;
      settled(*buffer, status);
    }
    if (plan_.sync_after) sync_in_time(lock);
  }
  void sync_in_time(Lock& lock) {
    syncing_ = true;
    lock.unlock();
    const Status status = below_->sync();
    lock.lock();
    syncing_ = false;
    if (!status.ok()) failed(status);
    ended_.notify_all();
  }

  Status flush_now(WindowBuffer& buffer) {
    ++counts_.flushes;
    const Status status = write_dirty(buffer, counts_.writes_below);
    settled(buffer, status);
    return status;
  }
  // All of them are tried: what can be below is.
  Status flush_all(Lock& lock) {
    end_begun();
    wait_for_background(lock);
    Status first;
    for (auto& buffer : buffers_) {
      if (!buffer->dirty()) continue;
      const Status status = flush_now(*buffer);
      if (first.ok()) first = status;
    }
    if (!plan_.sync_after) waiting_since_.reset();
    return first;
  }
  Status forget_all(Lock& lock) {
    HF_TRY(flush_all(lock));
    buffers_.clear();
    next_read_ = UINT64_MAX;
    return take_end_of_below();
  }

  Status take_end_of_below() {
    end_begun();
    auto end = below_->size();
    if (end) end_ = *end;
    return end.status();
  }
  // Others may have made it longer.
  Status look_at_end() {
    const uint64_t here = through_ ? 0 : end_;
    HF_TRY(take_end_of_below());
    end_ = std::max(here, end_);
    return Status();
  }
  // A call that goes below, and may change there what would be kept here.
  template <class Call>
  auto unbuffered(Call call) -> decltype(call()) {
    Lock lock(mutex_);
    HF_TRY(forget_all(lock));
    auto answer = call();
    HF_TRY(forget_all(lock));
    return answer;
  }

  // --- reading; all of [at, at + into.size()) lies before the end of the file
  Status read_one(Lock& lock, uint64_t at, ByteSpan into) {
    if (into.empty()) return Status();
    const uint64_t ahead = read_ahead_of(at, into.size());
    while (!into.empty()) {
      const uint64_t within = at % bytes_;
      const uint64_t direct = through_ ? into.size() : unbuffered_windows(at, into.size());
      const uint64_t count = direct ? direct : std::min<uint64_t>(into.size(), bytes_ - within);
      if (direct || (ahead == 0 && !find(at / bytes_))) HF_TRY(read_below(at, into.first(count)));
      else HF_TRY(serve(lock, at, into.first(count), ahead));
      at += count;
      into = into.subspan(count);
    }
    if (ahead >= bytes_) prefetch(at / bytes_ + (at % bytes_ ? 1 : 0));
    return Status();
  }
  // How far beyond its own end a read should go: nowhere unless it goes on where the last one ended.
  uint64_t read_ahead_of(uint64_t at, uint64_t count) {
    const bool goes_on = at == next_read_;
    next_read_ = at + count;
    if (!reads_ahead_ || through_ || !goes_on) return ahead_ = 0;
    return ahead_ = std::min(bytes_, std::max(first_read_ahead, 2 * ahead_));
  }
  Status serve(Lock& lock, uint64_t at, ByteSpan into, uint64_t ahead) {
    const uint64_t within = at % bytes_;
    WindowBuffer* buffer = find(at / bytes_);
    const bool readable = buffer && buffer->busy != WindowBuffer::Busy::reading && buffer->has(within, into.size());
    if (!readable) {
      auto had = buffer_for(lock, at / bytes_);
      if (!had) return had.status();
      buffer = *had;
      const uint64_t end = std::min(bytes_, end_ - buffer->begin());
      const uint64_t wanted = std::min(end - within, into.size() + ahead);
      HF_TRY(fill(*buffer, within, buffer->has(within, into.size()) ? 0 : wanted, counts_.reads_below));
    }
    ++counts_.served;
    buffer->get(within, into);
    buffer->used = ++clock_;
    return Status();
  }
  // Zeros where below ends before this file does.
  Status read_below(uint64_t at, ByteSpan into) {
    ++counts_.reads_below;
    return read_zero_filled(at, into);
  }
  Status read_zero_filled(uint64_t at, ByteSpan into) {
    end_begun();
    const Extent extent{at, into.size()};
    auto got = below_->read(std::span(&extent, 1), into);
    if (!got) return got.status();
    std::memset(into.data() + *got, 0, into.size() - *got);
    return Status();
  }
  Status fill(WindowBuffer& buffer, uint64_t within, uint64_t count, uint64_t& calls) {
    for (const Extent& gap : buffer.gaps(within, count)) {
      ++calls;
      HF_TRY(read_zero_filled(buffer.begin() + gap.offset, buffer.bytes(gap.offset, gap.length)));
      buffer.fill(gap.offset, gap.length);
    }
    return Status();
  }
  // The next window, while the program works on this one. It takes no buffer that somebody would have to wait for.
  void prefetch(uint64_t window) {
    const uint64_t end = end_;
    if (most_ < 2 || window * bytes_ >= end || find(window)) return;
    WindowBuffer* room = clean_room();
    if (!room || room->window() + 1 == window) return;  // not the one that is being read
    room->stand_for(window);
    room->used = ++clock_;
    room->busy = WindowBuffer::Busy::reading;
    const uint64_t count = std::min(bytes_, end - room->begin());
    const bool put_off = background_.submit([this, room, count] {
      uint64_t calls = 0;
      (void)fill(*room, 0, count, calls);  // a failure shows when the program asks
      Lock lock(mutex_);
      counts_.reads_below += calls;
      ++counts_.prefetches;
      if (current_meter) Meter::add(current_meter->prefetches, 1);
      room->busy = WindowBuffer::Busy::no;
      ended_.notify_all();
    });
    if (!put_off) room->busy = WindowBuffer::Busy::no;
  }

  std::unique_ptr<FileLayer> below_;
  BegunWrites* const begun_;
  WindowBuffer* under_way_ = nullptr;
  Background& background_;
  const uint64_t bytes_;
  const size_t most_;
  const bool reads_ahead_;
  const BufferPlan plan_;
  bool through_ = false;

  std::mutex mutex_;
  std::condition_variable ended_;  // the background is out of a buffer
  std::vector<std::unique_ptr<WindowBuffer>> buffers_;
  uint64_t clock_ = 0;
  uint64_t end_;  // of the file, as it is once all that is here is below
  uint64_t next_read_ = UINT64_MAX, ahead_ = 0;
  std::optional<Background::Milliseconds> waiting_since_;  // the oldest of what a killed process would lose, as far as the plan minds
  bool timed_ = false;                                     // the background will look after it
  bool syncing_ = false;                                   // the background, below
  std::shared_ptr<Tether> tether_;
  Status failure_;
  uint64_t failures_ = 0;
  BufferCounts counts_;
};

}  // namespace

Result<std::unique_ptr<BufferedFile>> BufferedFile::make(std::unique_ptr<FileLayer> below, const BufferPlan& plan, Background& background,
                                                         BegunWrites* begun) {
  auto size = below->size();
  if (!size) return size.status();
  return std::unique_ptr<BufferedFile>(std::make_unique<Buffered>(std::move(below), *size, plan, background, begun));
}

}  // namespace holdfast::layers
