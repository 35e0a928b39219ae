#include "file/coordinated/coordinated.hpp"

#include <algorithm>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "base/meter.hpp"
#include "base/shell_word.hpp"
#include "coding/checksum.hpp"
#include "file/coordinated/kept_writes.hpp"
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
  Result<uint64_t> next(Part part, uint64_t offset) override {
    HF_TRY(reach(false));
    return file_->next(part, offset);
  }
  Status allocate(int mode, const Extent& extent) override {
    HF_TRY(reach(false));
    return file_->allocate(mode, extent);
  }

 private:
  const Led led_;
  std::unique_ptr<FileLayer> file_;
};

class CoordinatedFile final : public Coordinated {
 public:
  // `led`: the same as `below`, where it is one.
  CoordinatedFile(std::unique_ptr<FileLayer> below, LedFile* led, redundant::Replica& replica, uint64_t subject, std::string name,
                  Protocols protocols, std::unique_ptr<Parts> parts = nullptr)
      : below_(std::move(below)),
        led_(led),
        name_(std::move(name)),
        protocols_(protocols),
        replica_(replica),
        successions_(replica.successions()),
        kept_(protocols_.most_kept),
        separate_(parts ? std::make_unique<SeparateWrites>(std::move(parts)) : nullptr),
        take_over_([this] { return take_over(); }),
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
    return write_agreed(extents, data);
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
  // In two steps: the leader names a place and sets it aside, so that the bytes can be written there by whoever leads then.
  Result<Extent> append(std::span<const ByteView> pieces, bool durable) override {
    std::lock_guard lock(mutex_);
    Bytes data;
    for (const ByteView& piece : pieces) data.insert(data.end(), piece.begin(), piece.end());
    if (led_) return append_committed(data, durable);
    HF_TRY(join_first());
    const Result<uint64_t> end_before = below_->size();
    const uint64_t seen = end_before ? *end_before : unseen;
    const auto place_it = [&](const Turn& turn) {
      const uint64_t end_then = turn.intended ? turn.intended->view : seen;
      const bool there = turn.again && end_then != unseen && was_set_aside(end_then, data.size());
      return there ? Outcome{.value = end_then} : set_aside(data.size());
    };
    const Outcome place = meet(Call::append, "a place at the end", 0, data.size(), sum_of({}, data), place_it, seen);
    if (!place.status.ok()) return place.status;
    const Extent extent{place.value, data.size()};
    HF_TRY(write_agreed({&extent, 1}, data));
    if (durable) HF_TRY(sync_agreed());
    return extent;
  }
  Result<uint64_t> size() override {
    std::lock_guard lock(mutex_);
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
    if (set.ok() && led_) kept_.forget(), known_end_ = bytes;  // it commits what was written before
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
  Result<uint64_t> next(Part part, uint64_t offset) override {
    std::lock_guard lock(mutex_);
    HF_TRY(join_first());
    const Outcome outcome =
        look(Call::next, "a look for holes", offset, uint64_t(part), [&](const Turn&) { return made(below_->next(part, offset)); });
    return outcome.status.ok() ? Result<uint64_t>(outcome.value) : outcome.status;
  }
  // What the system has it keeps, whoever dies next.
  Status close() override {
    std::lock_guard lock(mutex_);
    const Status joined = join_first();
    const Outcome outcome = look(Call::close, "the close", 0, 0, [&](const Turn&) { return Outcome{below_->close()}; });
    kept_.forget();
    replica_.forget(common_.subject);
    if (joined.ok()) return outcome.status;
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
  static constexpr uint64_t unseen = ~uint64_t(0);
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
    if (successions == successions_ && !kept_from_log_ && !has_lost_a_writer() && (!led_ || led_->is_open())) return Status();
    HF_TRY(kept_.repeat(*below_));
    successions_ = successions;
    kept_from_log_ = false;
    writers_ = 0;
    has_repeated_ = true;
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
    for (const Extent& extent : extents) known_end_ = std::max(known_end_, extent.end());
    if (!keeps() || (replica_.is_alone() && !may_repeat(outcome))) return Status();
    writers_ |= outcome.value;
    kept_.wrote(extents, data, may_repeat(outcome));
    note_where_from(outcome);
    return kept_.is_too_much() ? sync_agreed() : Status();
  }

  // What is not in the file yet, where somebody is to see it.
  Status join_first() {
    if (!separate_ || !separate_->has_any()) return Status();
    const Result<uint64_t> writers = separate_->join(common_, keeps() ? &kept_ : nullptr);
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

  // A team that was started again may open a file long after its leader was lost, as far as it knows of losses, and have it from the log what that
  // one has written and not synced.
  void note_where_from(const Outcome& outcome) { kept_from_log_ |= !outcome.is_own && replica_.claimed_then(common_.subject).has_value(); }

  // Its place is named and its bytes are there in one step, which a commit is.
  Result<Extent> append_committed(ByteView data, bool durable) {
    Result<uint64_t> end_before = led_->committed_end();
    if (end_before) *end_before = std::max(*end_before, known_end_);
    const Outcome place = meet(Call::append, "bytes at the end", 0, data.size(), sum_of({}, data), [&](const Turn& turn) {
      if (const auto there = turn.again && end_before ? appended_since(*end_before, data) : std::nullopt) return Outcome{.value = *there};
      const Result<Extent> taken = below_->append({&data, 1}, durable);
      return Outcome{taken.status(), taken ? taken->offset : 0};
    });
    HF_TRY(place.status);
    known_end_ = std::max(known_end_, place.value + data.size());
    return Extent{place.value, data.size()};
  }
  // By a leader that was lost before anybody heard of it. Others may have appended, too.
  std::optional<uint64_t> appended_since(uint64_t end_before, ByteView data) {
    const Result<uint64_t> end = below_->size();
    if (!end || *end < end_before + data.size()) return std::nullopt;
    Bytes there(*end - end_before);
    const Extent extent{end_before, there.size()};
    const auto got = below_->read({&extent, 1}, there);
    if (!got || *got != there.size()) return std::nullopt;
    const auto at = std::search(there.begin(), there.end(), data.begin(), data.end());
    return at == there.end() ? std::nullopt : std::optional(end_before + uint64_t(at - there.begin()));
  }

  // What a node has in its memory it alone can write.
  Status sync_agreed() {
    HF_TRY(join_first());
    const Status mine = writers_ >> replica_.place().team & 1 ? below_->sync() : Status();
    const auto sync_it = [&](const Turn& turn) {
      if (!mine.ok() || !turn.same_view) HF_TRY(kept_.repeat(*below_));
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

  // By zeros, which the system puts behind whatever others append at the same time.
  Outcome set_aside(uint64_t bytes) {
    const Bytes zeros(bytes);
    const ByteView piece(zeros);
    const Result<Extent> place = below_->append({&piece, 1}, false);
    return place ? Outcome{.value = place->offset} : Outcome{place.status()};
  }
  // By a leader that was lost before anybody heard of it, perhaps in part.
  bool was_set_aside(uint64_t end_before, uint64_t bytes) {
    const Result<uint64_t> end = below_->size();
    if (!end || *end <= end_before || *end > end_before + bytes) return false;
    Bytes there(*end - end_before, std::byte(1));
    const Extent extent{end_before, there.size()};
    const auto got = below_->read({&extent, 1}, there);
    return got && *got == there.size() && std::all_of(there.begin(), there.end(), [](std::byte byte) { return byte == std::byte(0); });
  }

  const std::unique_ptr<FileLayer> below_;
  LedFile* const led_;
  const std::string name_;
  const Protocols protocols_;
  redundant::Replica& replica_;
  std::mutex mutex_;
  uint32_t successions_;
  uint64_t known_end_ = 0;  // of what this replica has written
  Reading reading_;
  uint64_t writers_ = 0;       // teams that have written chunks since the last sync, as bits
  bool has_repeated_ = false;  // in the leader, since the last read began
  KeptWrites kept_;
  bool kept_from_log_ = false;
  const std::unique_ptr<SeparateWrites> separate_;
  bool through_ = false;  // nothing is written apart any more
  const std::function<Status()> take_over_;
  const Common common_;
};

}  // namespace

std::unique_ptr<Coordinated> coordinated(std::unique_ptr<FileLayer> below, redundant::Replica& replica, uint64_t subject, std::string name,
                                         Protocols protocols, std::unique_ptr<Parts> parts) {
  return std::make_unique<CoordinatedFile>(std::move(below), nullptr, replica, subject, std::move(name), protocols, std::move(parts));
}

Result<std::unique_ptr<FileLayer>> coordinated(Led led, redundant::Replica& replica, uint64_t subject, std::string name, Protocols protocols) {
  auto below = std::make_unique<LedFile>(std::move(led));
  LedFile* const led_file = below.get();
  auto file = std::make_unique<CoordinatedFile>(std::move(below), led_file, replica, subject, std::move(name), protocols);
  HF_TRY(file->begin());
  return std::unique_ptr<FileLayer>(std::move(file));
}

}  // namespace holdfast::file
