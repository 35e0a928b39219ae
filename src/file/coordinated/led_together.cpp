#include "file/coordinated/led_together.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "exchange/agree.hpp"
#include "file/coordinated/coordinated.hpp"
#include "file/coordinated/kept_writes.hpp"
#include "file/coordinated/names.hpp"

namespace holdfast::file {

namespace {

using redundant::Claim;
using redundant::Turn;

// A call of all ranks is carried out by all ranks of a team, or by none. A rank that has heard the lost team's outcome joins those that have not, and
// keeps that outcome. So it ends with one look at whether any rank of the team carries it out.
class LedTogether final : public CollectiveFile {
 public:
  LedTogether(OpenTogether open, redundant::Replica& replica, uint64_t subject, std::string name, exchange::Exchange& ranks)
      : open_(std::move(open)),
        name_(std::move(name)),
        replica_(replica),
        ranks_(ranks),
        alone_(exchange::make_solo()),
        meeting_{replica, subject, name_} {}

  // The program's open.
  Status begin() {
    const Protocols protocols{ReadProtocol::read_and_distribute, WriteProtocol::simple};
    if (auto* const sharing = redundant::Sharing::of(replica_)) sharing->note(line_of(name_, protocols));
    const Claim claim{.call = uint64_t(Call::open), .view = seen_at(name_)};
    const auto open = [this, seen = claim.view](const Turn& turn) {
      auto file = open_(ranks_, true, turn.again && seen_then(turn, seen) == 0);
      if (!file) return Outcome{file.status()};
      together_ = std::move(*file);
      return size_of(*together_);
    };
    return take_size(by_all(claim, "the open", [&](const Turn& turn, bool) { return open(turn); }));
  }

  Status write(std::span<const Extent> extents, ByteView data) override {
    std::lock_guard lock(mutex_);
    const Outcome outcome = meeting_.meet(claim_of(Call::write, extents, data, false), "a write", [&](const Turn&) {
      const auto below = reach_alone();
      return Outcome{below ? (*below)->write(extents, data) : below.status()};
    });
    if (outcome.status.ok()) keep(extents, data);
    return outcome.status;
  }
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override {
    std::lock_guard lock(mutex_);
    Claim claim = claim_of(Call::read, extents, into, false);
    claim.looks = 1;
    const Outcome outcome = meeting_.meet(claim, "a read", [&](const Turn&) {
      const auto below = reach_alone();
      return below ? packed((*below)->read(extents, into), into, false) : Outcome{below.status()};
    });
    return taken(outcome, into);
  }
  Status write_all(std::span<const Extent> extents, ByteView data, bool& more) override {
    std::lock_guard lock(mutex_);
    const bool mine_goes_on = std::exchange(more, false);
    bool too_much = false;
    const Outcome outcome = by_all(
        claim_of(Call::write_all, extents, data, mine_goes_on), "a write of all ranks",
        [&](const Turn&, bool) {
          bool goes_on = mine_goes_on;
          const Status written = together_->write_all(extents, data, goes_on);
          return Outcome{written, goes_on};
        },
        &too_much);
    more = outcome.value != 0;
    if (outcome.status.ok()) keep(extents, data);
    return outcome.status.ok() && too_much ? sync_all() : outcome.status;
  }
  Result<uint64_t> read_all(std::span<const Extent> extents, ByteSpan into, bool& more) override {
    std::lock_guard lock(mutex_);
    const bool mine_goes_on = std::exchange(more, false);
    const Outcome outcome = by_all(claim_of(Call::read_all, extents, into, mine_goes_on), "a read of all ranks", [&](const Turn&, bool joins) {
      Bytes unused(joins ? into.size() : 0);
      const ByteSpan to = joins ? ByteSpan(unused) : into;
      bool goes_on = mine_goes_on;
      const Result<uint64_t> got = together_->read_all(extents, to, goes_on);
      return packed(got, to, goes_on);
    });
    more = outcome.value & 1;
    return taken(outcome, into);
  }
  Result<Extent> append(std::span<const ByteView>, bool) override {
    return Status(Kind::unsupported, name_ + ": nothing appends to a file that ranks have opened together");
  }
  Result<uint64_t> size() override {
    std::lock_guard lock(mutex_);
    const Outcome outcome = meeting_.meet({.call = uint64_t(Call::size), .looks = 1}, "a look at the size", [&](const Turn&) {
      const auto below = reach_alone();
      return below ? size_of(**below) : Outcome{below.status()};
    });
    HF_TRY(outcome.status);
    return std::max(outcome.value, end_);
  }
  Result<uint64_t> agreed_size() override {
    std::lock_guard lock(mutex_);
    const Outcome outcome = by_all({.call = uint64_t(Call::size), .looks = 1}, "a look at the size", [&](const Turn&, bool) {
      const Result<uint64_t> size = together_->agreed_size();
      return Outcome{size.status(), size ? *size : 0};
    });
    HF_TRY(take_size(outcome));
    return end_;
  }
  Status sync() override {
    std::lock_guard lock(mutex_);
    return sync_all();
  }
  Status set_size(uint64_t bytes) override {
    std::lock_guard lock(mutex_);
    const Outcome outcome = by_all({.call = uint64_t(Call::set_size), .bytes = bytes}, "a change of the size", [&](const Turn&, bool) {
      return Outcome{together_->set_size(bytes), bytes};
    });
    HF_TRY(outcome.status);
    kept_.forget();  // it commits what was written before
    end_ = bytes;
    return Status();
  }
  Status lengthen(uint64_t bytes) override {
    std::lock_guard lock(mutex_);
    return take_size(by_all({.call = uint64_t(Call::allocate), .bytes = bytes}, "an allocation", [&](const Turn&, bool) {
      const Status longer = together_->lengthen(bytes);
      return longer.ok() ? size_of(*together_) : Outcome{longer};
    }));
  }
  Status set_atomic(bool atomic) override {
    std::lock_guard lock(mutex_);
    const Outcome outcome = by_all({.call = uint64_t(Call::set_atomic), .at = atomic}, "a change of the mode",
                                   [&](const Turn&, bool) { return Outcome{together_->set_atomic(atomic)}; });
    HF_TRY(outcome.status);
    kept_.forget();  // likewise
    atomic_ = atomic;
    return Status();
  }
  Status close() override {
    std::lock_guard lock(mutex_);
    const Outcome outcome = by_all({.call = uint64_t(Call::close)}, "the close", [&](const Turn&, bool) {
      const Status closed = together_->close();
      together_.reset();
      return Outcome{closed};
    });
    kept_.forget();
    replica_.forget(meeting_.subject);
    return outcome.status;
  }

 private:
  using Act = std::function<Outcome(const Turn&, bool joins)>;

  static Claim claim_of(Call call, std::span<const Extent> extents, ByteView data, bool goes_on) {
    const bool writes = call == Call::write || call == Call::write_all;
    const uint64_t at = extents.empty() ? 0 : extents[0].offset;
    return {.call = uint64_t(call), .at = at, .bytes = data.size(), .sum = sum_of(extents, writes ? data : ByteView()) + goes_on};
  }
  static Outcome size_of(CollectiveFile& file) {
    const Result<uint64_t> size = file.size();
    return {size.status(), size ? *size : 0};
  }
  Status take_size(const Outcome& outcome) {
    HF_TRY(outcome.status);
    end_ = std::max(end_, outcome.value);
    return Status();
  }
  // Count and whether it goes on in one number.
  Outcome packed(const Result<uint64_t>& got, ByteView bytes, bool goes_on) {
    Outcome made{got.status(), (got ? *got : 0) * 2 + goes_on};
    if (got && !replica_.is_alone()) made.payload.assign(bytes.begin(), bytes.end());
    return made;
  }
  static Result<uint64_t> taken(const Outcome& outcome, ByteSpan into) {
    HF_TRY(outcome.status);
    if (!outcome.payload.empty() && outcome.payload.size() == into.size()) std::memcpy(into.data(), outcome.payload.data(), into.size());
    return outcome.value / 2;
  }

  Outcome by_all(const Claim& claim, const char* call, const Act& act, bool* too_much = nullptr) {
    bool acted = false;
    const bool opens = claim.call == uint64_t(Call::open);
    const auto look = [&](bool acts) {
      const std::vector<int64_t> facts = ranks_.all_max({acts, kept_.is_too_much(), int64_t(end_)});
      end_ = uint64_t(facts[2]);
      if (too_much) *too_much = facts[1] != 0;
      return facts[0] != 0;
    };
    const Outcome outcome = meeting_.meet(claim, call, [&](const Turn& turn) {
      acted = true;
      (void)look(true);
      const Status ready = opens ? Status() : reach_together();
      return ready.ok() ? act(turn, false) : Outcome{ready};
    });
    if (acted || !look(false)) return outcome;
    if (opens || reach_together().ok()) (void)act({.again = true, .same_view = true}, true);
    return outcome;
  }

  Status sync_all() {
    const Outcome outcome = by_all({.call = uint64_t(Call::sync)}, "a sync", [&](const Turn&, bool) {
      const Status synced = together_->sync();
      return synced.ok() ? size_of(*together_) : Outcome{synced};
    });
    if (outcome.status.ok()) kept_.forget();
    return take_size(outcome);
  }

  void keep(std::span<const Extent> extents, ByteView data) {
    for (const Extent& extent : extents)
      if (extent.length > 0) end_ = std::max(end_, extent.end());
    const bool is_below = together_ || solo_;
    if (atomic_ || (is_below && replica_.is_alone())) return;  // in atomic mode what was written has been committed
    kept_.wrote(extents, data, !is_below);
  }

  // Collective: a team that begins to lead.
  Status reach_together() {
    if (together_) return Status();
    Status left;
    if (solo_) {
      left = solo_->close();
      solo_.reset();
      if (left.ok()) kept_.forget();
    }
    HF_TRY(exchange::agree(ranks_, left));
    auto file = open_(ranks_, false, true);
    HF_TRY(file.status());
    if (atomic_) HF_TRY((*file)->set_atomic(true));
    HF_TRY(exchange::agree(ranks_, kept_.repeat(**file)));
    together_ = std::move(*file);
    return Status();
  }
  // The other ranks may be far from their next call: until all come together this one is a writer of its own.
  Result<CollectiveFile*> reach_alone() {
    if (together_) return together_.get();
    if (solo_) return solo_.get();
    auto file = open_(*alone_, false, true);
    HF_TRY(file.status());
    if (atomic_) HF_TRY((*file)->set_atomic(true));
    HF_TRY(kept_.repeat(**file));
    solo_ = std::move(*file);
    return solo_.get();
  }

  const OpenTogether open_;
  const std::string name_;
  redundant::Replica& replica_;
  exchange::Exchange& ranks_;
  const std::unique_ptr<exchange::Exchange> alone_;
  const Meeting meeting_;
  std::mutex mutex_;
  std::unique_ptr<CollectiveFile> together_, solo_;
  KeptWrites kept_;
  uint64_t end_ = 0;  // of the file, as far as this rank knows
  bool atomic_ = false;
};

}  // namespace

Result<std::unique_ptr<CollectiveFile>> led_together(OpenTogether open, redundant::Replica& replica, uint64_t subject, std::string name,
                                                     exchange::Exchange& ranks) {
  auto file = std::make_unique<LedTogether>(std::move(open), replica, subject, std::move(name), ranks);
  HF_TRY(file->begin());
  return std::unique_ptr<CollectiveFile>(std::move(file));
}

}  // namespace holdfast::file
