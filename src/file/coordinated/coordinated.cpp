#include "file/coordinated/coordinated.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/meter.hpp"
#include "base/shell_word.hpp"
#include "coding/checksum.hpp"
#include "file/coordinated/kept_writes.hpp"
#include "file/coordinated/write/beside.hpp"
#include "file/coordinated/write/separate.hpp"
#include "redundant/subjects.hpp"

namespace holdfast::file {

uint64_t subject_of(const std::string& kind, const std::string& path) {
  const std::string text = kind + ":" + path;
  return coding::plain_checksum(std::as_bytes(std::span(text.data(), text.size())));
}

uint64_t subject_of_next_open(redundant::Replica& replica, const std::string& path) {
  const uint64_t name = subject_of("open", path);
  return redundant::open_subject(name, replica.next_open(name));
}

namespace {

using redundant::Claim;
using redundant::Turn;

// A file that only the leader has open. It is not asked for anything in a follower.
class LedFile final : public FileLayer {
 public:
  explicit LedFile(Led led) : led_(std::move(led)) {}
  Status reach(bool first) {
    if (file_) return Status();
    auto file = led_.open(first);
    HF_TRY(file.status());
    file_ = std::move(*file);
    return Status();
  }
  bool is_open() const { return file_ != nullptr; }
  Result<uint64_t> committed_end() const { return led_.committed_end(); }

  Status write(std::span<const Extent> extents, ByteView data) override {
    HF_TRY(reach(false));
    return file_->write(extents, data);
  }
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override {
    HF_TRY(reach(false));
    return file_->read(extents, into);
  }
  Result<Extent> append(std::span<const ByteView> pieces, bool durable) override {
    HF_TRY(reach(false));
    return file_->append(pieces, durable);
  }
  Result<uint64_t> size() override {
    HF_TRY(reach(false));
    return file_->size();
  }
  Status sync() override {
    HF_TRY(reach(false));
    return file_->sync();
  }
  Status set_size(uint64_t bytes) override {
    HF_TRY(reach(false));
    return file_->set_size(bytes);
  }
  Status close() override {
    HF_TRY(reach(false));
    return file_->close();
  }
  Status zero(const Extent& extent) override {
    HF_TRY(reach(false));
    return file_->zero(extent);
  }
  Result<uint64_t> next(Stretch stretch, uint64_t offset) override {
    HF_TRY(reach(false));
    return file_->next(stretch, offset);
  }
  Status allocate(int mode, const Extent& extent) override {
    HF_TRY(reach(false));
    return file_->allocate(mode, extent);
  }

 private:
  const Led led_;
  std::unique_ptr<FileLayer> file_;
};

class CoordinatedFile final : public Coordinated, public layers::BegunWrites {
 public:
  // `led`: the same as `below`, where it is one.
  CoordinatedFile(std::unique_ptr<FileLayer> below, LedFile* led, redundant::Replica& replica, uint64_t subject, std::string name,
                  Protocols protocols, std::unique_ptr<Parts> parts = nullptr, layers::Background& background = layers::no_background())
      : below_(std::move(below)),
        led_(led),
        name_(std::move(name)),
        protocols_(protocols),
        replica_(replica),
        successions_(replica.successions()),
        kept_(protocols_.most_kept),
        separate_(parts ? std::make_unique<SeparateWrites>(std::move(parts)) : nullptr),
        beside_(background),
        take_over_([this] { return take_over(); }),
        repeat_kept_([this] { return repeat_kept(); }),
        common_{{replica, subject, name_}, *below_, take_over_, reading_, has_repeated_} {
    reading_.paces = protocols_.reads;
    reading_.reads_itself = !led;
    if (auto* const sharing = redundant::Sharing::of(replica)) {
      reading_.readers = (uint64_t(1) << replica.place().teams) - 1;
      sharing->note(line_of(name_, protocols));
    }
  }

  // Of one that only the leader has open.
  Status begin() {
    return meet(Call::open, "the open", 0, 0, 0, [this](const Turn& turn) { return Outcome{led_->reach(!turn.again)}; }).status;
  }

  Status write(std::span<const Extent> extents, ByteView data) override {
    std::lock_guard lock(mutex_);
    HF_TRY(end_first());
    return write_agreed(extents, data);
  }
  // Not where each write is shared out, nor where only the leader has the file open: that is its engine's.
  layers::BegunWrites* begun_writes() override { return several_write() || led_ ? nullptr : this; }
  Status begin_write(std::span<const Extent> extents, ByteView data) override {
    std::lock_guard lock(mutex_);
    if (!untold_.ok()) return std::exchange(untold_, Status());
    if (kept_.is_too_much()) {
      const Status synced = sync_agreed();
      untold_ = Status();
      HF_TRY(synced);
    }
    const Claim claim{.call = uint64_t(Call::begin_write), .at = extents[0].offset, .bytes = data.size(), .sum = sum_of(extents, data)};
    const Outcome outcome = common_.meet(claim, "a write", [&](const Turn&) {
      const Status before = beside_.finish(*below_);
      if (before.ok()) beside_.start(*below_, extents, data);
      return Outcome{before};
    });
    HF_TRY(ended(outcome));
    beside_.agreed(extents, data);
    return Status();
  }
  Status end_write() override {
    std::lock_guard lock(mutex_);
    if (!untold_.ok()) return std::exchange(untold_, Status());
    return end_agreed();
  }
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override {
    std::lock_guard lock(mutex_);
    HF_TRY(join_first());
    has_repeated_ = false;
    if (reading_.paces) reading_.began_ns = meter_now_ns();
    const Outcome outcome =
        is_one_read_below() ? read_by_the_leader(common_, extents, into) : read_by(next_read(into.size()), common_, extents, into);
    return outcome.status.ok() ? Result<uint64_t>(outcome.value) : outcome.status;
  }
  // In two steps: where the file ends, which all know, and the bytes behind it. In between it is this rank's turn, also where its leader is lost.
  Result<Extent> append(std::span<const ByteView> pieces, bool durable) override {
    std::lock_guard lock(mutex_);
    Bytes data;
    for (const ByteView& piece : pieces) data.insert(data.end(), piece.begin(), piece.end());
    HF_TRY(join_first());
    const uint64_t file = appended_as();
    const Outcome end = meet(Call::append, "a look for the end", 0, data.size(), sum_of({}, data), [&](const Turn&) {
      replica_.begin_append(file, number_of_append());
      return made(end_of_all());
    });
    const uint64_t number = number_of_append();
    const auto put_it = [&](const Turn& turn) { return put_at_end(end.value, turn.again, data, durable); };
    const Outcome put = end.status.ok() ? meet(Call::put_at_end, "bytes at the end", end.value, data.size(), 0, put_it) : end;
    replica_.end_append(file, number);
    HF_TRY(put.status);
    const Extent extent{put.value, taken_in(put, data.size())};
    if (led_) return extent;
    HF_TRY(written({.is_own = put.is_own}, {&extent, 1}, ByteView(data).first(extent.length)));
    if (durable) HF_TRY(sync_agreed());
    return extent;
  }
  Result<uint64_t> size() override {
    std::lock_guard lock(mutex_);
    HF_TRY(end_first());
    const Outcome outcome = look(Call::size, "a look at the size", 0, 0, [&](const Turn&) { return made(below_->size()); });
    HF_TRY(outcome.status);
    return separate_ ? std::max(outcome.value, separate_->end()) : outcome.value;
  }
  Status sync() override {
    std::lock_guard lock(mutex_);
    return sync_agreed();
  }
  Status set_size(uint64_t bytes) override {
    std::lock_guard lock(mutex_);
    const Status set = change(Call::set_size, "a change of the size", 0, bytes, [bytes](FileLayer& below) { return below.set_size(bytes); });
    if (set.ok() && led_) kept_.forget();  // it commits what was written before
    return set;
  }
  Status zero(const Extent& extent) override {
    std::lock_guard lock(mutex_);
    return change(Call::zero, "zeros", extent.offset, extent.length, [extent](FileLayer& below) { return below.zero(extent); });
  }
  Status allocate(int mode, const Extent& extent) override {
    std::lock_guard lock(mutex_);
    return change(Call::allocate, "an allocation", extent.offset, extent.length,
                  [mode, extent](FileLayer& below) { return below.allocate(mode, extent); });
  }
  Result<uint64_t> next(Stretch stretch, uint64_t offset) override {
    std::lock_guard lock(mutex_);
    HF_TRY(join_first());
    const Outcome outcome =
        look(Call::next, "a look for holes", offset, uint64_t(stretch), [&](const Turn&) { return made(below_->next(stretch, offset)); });
    return outcome.status.ok() ? Result<uint64_t>(outcome.value) : outcome.status;
  }
  // What the system has it keeps, whoever dies next.
  Status close() override {
    std::lock_guard lock(mutex_);
    const Status ended = end_first(), joined = join_first();
    const Outcome outcome = look(Call::close, "the close", 0, 0, [&](const Turn&) { return Outcome{below_->close()}; });
    kept_.forget();
    replica_.forget(common_.subject);
    if (joined.ok()) return ended.ok() ? outcome.status : ended;
    return Status(joined.kind(),
                  fmt::format("{}: {}; nothing is lost: it stays in the replicas' parts; when the cause is gone: holdfast merge {}", name_,
                              joined.sentence(), shell_word(name_)),
                  joined.sys_errno());
  }
  Status join() override {
    std::lock_guard lock(mutex_);
    return join_first();
  }
  Status write_through() override {
    std::lock_guard lock(mutex_);
    through_ = true;
    return join_first();
  }

 private:
  static Outcome made(const Result<uint64_t>& result) { return {result.status(), result ? *result : 0, {}}; }

  Outcome meet(Call call, const char* name, uint64_t at, uint64_t bytes, uint64_t sum, const std::function<Outcome(const Turn&)>& act,
               uint64_t view = 0) {
    return common_.meet({.call = uint64_t(call), .at = at, .bytes = bytes, .sum = sum, .view = view}, name, act);
  }

  // Of no change that others see.
  Outcome look(Call call, const char* name, uint64_t at, uint64_t sum, const std::function<Outcome(const Turn&)>& act) {
    return common_.meet({.call = uint64_t(call), .at = at, .sum = sum, .looks = 1}, name, act);
  }

  // In a leader's turn.
  Status take_over() {
    const uint32_t successions = replica_.successions();
    if (successions == successions_ && !kept_from_log_ && !repeated_in_part_ && !has_lost_a_writer() && (!led_ || led_->is_open())) return Status();
    beside_.is_to_be_written_again();
    HF_TRY(repeat_kept());
    successions_ = successions;
    kept_from_log_ = false;
    writers_ = 0;
    has_repeated_ = true;
    return Status();
  }
  // One that has failed in the middle has cut the file, or put older bytes over newer ones: until all is repeated nobody is to see them.
  Status repeat_kept() {
    repeated_in_part_ = true;
    HF_TRY(kept_.repeat(*below_));
    repeated_in_part_ = false;
    return Status();
  }
  bool has_lost_a_writer() const { return writers_ != 0 && (writers_ & ~redundant::Sharing::of(replica_)->living().teams) != 0; }

  Status write_agreed(std::span<const Extent> extents, ByteView data) {
    const Result<Outcome> outcome = write_by_protocol(extents, data);
    HF_TRY(outcome.status());
    return written(*outcome, extents, data);
  }
  Result<Outcome> write_by_protocol(std::span<const Extent> extents, ByteView data) {
    if (!several_write() || !protocols_.shares_out()) return write_simply(common_, extents, data);
    if (protocols_.write == WriteProtocol::distributed) return write_distributed(common_, extents, data, protocols_.writes);
    if (separate_ && !through_ && SeparateWrites::suits(common_, extents, data))
      if (auto outcome = separate_->write(common_, extents, data)) return std::move(*outcome);
    HF_TRY(join_first());
    return write_simply(common_, extents, data);
  }
  Status written(const Outcome& outcome, std::span<const Extent> extents, ByteView data) {
    HF_TRY(outcome.status);
    keep(outcome, extents, data);
    return kept_.is_too_much() ? sync_agreed() : Status();
  }
  void keep(const Outcome& outcome, std::span<const Extent> extents, ByteView data) {
    if (!keeps() || (replica_.is_alone() && !may_repeat(outcome))) return;
    writers_ |= outcome.value;
    kept_.wrote(extents, data, may_repeat(outcome));
    note_where_from(outcome);
  }

  // The one that was under way, as all replicas know by now.
  Status ended(const Outcome& outcome) {
    if (outcome.status.ok() && beside_.is_under_way()) keep(outcome, beside_.extents(), beside_.data());
    beside_.is_over();
    return outcome.status;
  }
  Status end_agreed() {
    if (!beside_.is_under_way()) return Status();
    return ended(look(Call::end_of_begun_write, "the end of a write", 0, 0, [&](const Turn&) { return Outcome{beside_.finish(*below_)}; }));
  }
  // Before any other call. Whoever has begun it is to hear of a failure, too.
  Status end_first() {
    const Status end = end_agreed();
    if (!end.ok()) untold_ = end;
    return end;
  }

  // What is not in the file yet, where somebody is to see it.
  Status join_first() {
    HF_TRY(end_first());
    if (!separate_ || !separate_->has_any()) return Status();
    const Result<uint64_t> writers = separate_->join(common_, keeps() ? repeat_kept_ : nullptr);
    HF_TRY(writers.status());
    if (keeps()) writers_ |= *writers;
    return Status();
  }

  // A protected file has rows of its own, which pieces would cut.
  bool is_one_read_below() const { return !protocols_.shares_out() || (led_ && protocols_.read == ReadProtocol::read_and_distribute); }
  ReadProtocol next_read(uint64_t bytes) const {
    const bool simply = reading_.paces && (!reading_.shared || bytes < least_shared);
    return simply ? ReadProtocol::simple : protocols_.read;
  }
  bool several_write() const { return protocols_.write != WriteProtocol::simple; }
  // The leader repeats what a lost replica has written, too, and then what it has written itself behind that.
  bool may_repeat(const Outcome& outcome) const { return !outcome.is_own || several_write(); }

  // Whether what the leader has written may die with it.
  bool keeps() const { return led_ || !replica_.shares_node(); }

  // A team that was started again may open a file long after its leader was lost, as far as it knows of losses. It has from the log what that one has
  // written and not synced.
  void note_where_from(const Outcome& outcome) { kept_from_log_ |= !outcome.is_own && replica_.claimed_then(common_.subject).has_value(); }

  uint64_t appended_as() const { return protocols_.file != 0 ? protocols_.file : subject_of("appended", name_); }
  // Of the first of its two steps, in it or when it is over.
  uint64_t number_of_append() const {
    const redundant::Replica::NumberedCall step = replica_.numbered(common_.subject);
    const uint64_t call[2] = {step.subject, step.number};
    return coding::plain_checksum(std::as_bytes(std::span(call)));
  }
  // With what other ranks have appended.
  Result<uint64_t> end_of_all() {
    const Result<uint64_t> end = below_->size();
    if (!led_ || !end) return end;
    const Result<uint64_t> committed = led_->committed_end();
    return committed ? std::max(*end, *committed) : committed;
  }

  // How many bytes were taken, where these are not all, is the payload.
  static Outcome taken_at(uint64_t place, uint64_t taken, uint64_t all) {
    const auto* const count = reinterpret_cast<const std::byte*>(&taken);
    return {.value = place, .payload = taken == all ? Bytes() : Bytes(count, count + sizeof taken)};
  }
  static uint64_t taken_in(const Outcome& outcome, uint64_t all) {
    if (outcome.payload.size() == sizeof all) std::memcpy(&all, outcome.payload.data(), sizeof all);
    return all;
  }
  // In the leader. What one that was lost has put there is completed.
  Outcome put_at_end(uint64_t end_before, bool again, ByteView data, bool durable) {
    Extent there{end_before, 0};
    if (again) {
      const Result<Extent> found = appended_since(end_before, data);
      if (!found) return Outcome{found.status()};
      there = *found;
    }
    if (there.length == data.size()) return taken_at(there.offset, there.length, data.size());
    const ByteView rest = data.subspan(there.length);
    const Result<Extent> put = below_->append({&rest, 1}, led_ && durable);
    if (!put && there.length == 0) return Outcome{put.status()};
    if (there.length == 0) there.offset = put->offset;
    return taken_at(there.offset, there.length + (put ? put->length : 0), data.size());
  }
  // No other rank has appended since. Another program may have.
  Result<Extent> appended_since(uint64_t end_before, ByteView data) {
    const Result<uint64_t> end = below_->size();
    HF_TRY(end.status());
    if (*end <= end_before) return Extent{end_before, 0};
    Bytes there(*end - end_before);
    const Extent extent{end_before, there.size()};
    const auto got = below_->read({&extent, 1}, there);
    if (!got || *got != there.size()) return Extent{end_before, std::min<uint64_t>(there.size(), data.size())};  // it is open only to write
    const auto at = std::search(there.begin(), there.end(), data.begin(), data.end());
    if (at != there.end()) return Extent{end_before + uint64_t(at - there.begin()), data.size()};
    size_t part = std::min(there.size(), data.size());
    while (!std::equal(data.begin(), data.begin() + ptrdiff_t(part), there.end() - ptrdiff_t(part))) --part;
    return Extent{*end - part, part};
  }

  // What a node has in its memory it alone can write.
  Status sync_agreed() {
    HF_TRY(join_first());
    const Status mine = writers_ >> replica_.place().team & 1 ? below_->sync() : Status();
    const auto sync_it = [&](const Turn& turn) {
      if (!mine.ok() || !turn.same_view) HF_TRY(repeat_kept());
      HF_TRY(below_->sync());
      return separate_ ? separate_->make_removals_durable() : Status();
    };
    const auto act = [&](const Turn& turn) { return Outcome{sync_it(turn)}; };
    const Outcome outcome = common_.meet({.call = uint64_t(Call::sync), .view = uint64_t(mine.to_errno()), .looks = 1}, "a sync", act);
    if (outcome.status.ok()) kept_.forget(), writers_ = 0;
    return outcome.status;
  }

  Status change(Call call, const char* name, uint64_t at, uint64_t bytes, const std::function<Status(FileLayer&)>& change) {
    HF_TRY(join_first());
    const Outcome outcome = meet(call, name, at, bytes, 0, [&](const Turn&) { return Outcome{change(*below_)}; });
    if (outcome.status.ok() && keeps()) kept_.changed(change, may_repeat(outcome)), note_where_from(outcome);
    return outcome.status;
  }

  const std::unique_ptr<FileLayer> below_;
  LedFile* const led_;
  const std::string name_;
  const Protocols protocols_;
  redundant::Replica& replica_;
  std::mutex mutex_;
  uint32_t successions_;
  Reading reading_;
  uint64_t writers_ = 0;       // teams that have written chunks since the last sync, as bits
  bool has_repeated_ = false;  // in the leader, since the last read began
  KeptWrites kept_;
  bool kept_from_log_ = false, repeated_in_part_ = false;
  const std::unique_ptr<SeparateWrites> separate_;
  bool through_ = false;  // nothing is written apart any more
  WriteBeside beside_;
  Status untold_;  // of a write that was begun
  const std::function<Status()> take_over_, repeat_kept_;
  const Common common_;
};

}  // namespace

std::unique_ptr<Coordinated> coordinated(std::unique_ptr<FileLayer> below, redundant::Replica& replica, uint64_t subject, std::string name,
                                         Protocols protocols, std::unique_ptr<Parts> parts, layers::Background& background) {
  return std::make_unique<CoordinatedFile>(std::move(below), nullptr, replica, subject, std::move(name), protocols, std::move(parts), background);
}

Result<std::unique_ptr<FileLayer>> coordinated(Led led, redundant::Replica& replica, uint64_t subject, std::string name, Protocols protocols) {
  auto below = std::make_unique<LedFile>(std::move(led));
  LedFile* const led_file = below.get();
  auto file = std::make_unique<CoordinatedFile>(std::move(below), led_file, replica, subject, std::move(name), protocols);
  HF_TRY(file->begin());
  return std::unique_ptr<FileLayer>(std::move(file));
}

}  // namespace holdfast::file
