#include "layers/shared_records/shared_records.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "exchange/agree.hpp"
#include "layers/shared_records/names.hpp"

namespace holdfast::layers {

using layout::Entry;
using layout::EntryKind;

// This process's pending records in order: those that memory has no room for from the log, then the others.
class SharedRecords::OwnSource final : public RecordSource {
 public:
  explicit OwnSource(SharedRecords& of) : of_(of), at_(of.pending_from_) {}
  Result<std::vector<PendingRecord>> next(size_t most) override {
    std::vector<PendingRecord> records;
    while (at_ < of_.uncached_to_ && records.size() < most) {
      auto entries = own_entries(*of_.log_, of_.key_, at_, of_.uncached_to_, most - records.size());
      if (!entries) return entries.status();
      for (const ScannedEntry& found : *entries)
        if (found.entry.kind == EntryKind::record && found.entry.id >= of_.first_pending_id_) records.push_back(pending_of(found));
    }
    while (records.size() < most && cached_ < of_.cache_.size()) records.push_back(of_.cache_[cached_++]);
    return records;
  }
  Status read(std::span<const PendingRecord> records, ByteSpan packed) override {
    return read_packed(of_.log_->key(), records, packed, [&](uint64_t offset, ByteSpan into, const std::function<bool()>& sound) {
      return of_.log_->read_checked(offset, into, sound);
    });
  }
  Status read_part(const PendingRecord& record, uint64_t from, ByteSpan into) override { return of_.log_->read(record.position + from, into); }
  uint64_t seed() const override { return of_.log_->key(); }

 private:
  SharedRecords& of_;
  uint64_t at_;
  size_t cached_ = 0;
};

SharedRecords::SharedRecords(layout::Session main, std::shared_ptr<Shelf> shelf, std::shared_ptr<Clock> clock, RecordOptions options)
    : session_(std::move(main)), shelf_(std::move(shelf)), clock_(std::move(clock)), options_(std::move(options)) {}
SharedRecords::~SharedRecords() = default;

namespace {

// What rank 0 found out, for all.
struct Beginning {
  uint64_t number = 1;
  bool leftovers = false;
  std::array<char, 32> id{};
};

Result<Beginning> look_for_leftovers(const Shelf& shelf) {
  Beginning beginning;
  const std::string id = layout::random_id();
  std::copy(id.begin(), id.end(), beginning.id.begin());
  auto names = shelf.list();
  if (!names) return names.status();
  for (const std::string& name : *names)
    if (auto parsed = parse_record_name(name)) {
      beginning.leftovers = true;
      beginning.number = std::max(beginning.number, parsed->number + 1);
    }
  return beginning;
}

Result<Beginning> begin_together(exchange::Exchange& ranks, const Shelf& shelf) {
  Result<Beginning> beginning = ranks.rank() == 0 ? look_for_leftovers(shelf) : Beginning();
  HF_TRY(exchange::agree(ranks, beginning.status()));
  const Bytes told = std::move(ranks.all_gather(std::as_bytes(std::span(&*beginning, 1)))[0]);
  std::memcpy(&*beginning, told.data(), sizeof *beginning);
  return beginning;
}

}  // namespace

Result<std::unique_ptr<SharedRecords>> SharedRecords::open(exchange::Exchange& ranks, layout::Session main, std::shared_ptr<Shelf> shelf,
                                                           std::shared_ptr<Clock> clock, RecordOptions options, std::string& notice) {
  auto records = std::unique_ptr<SharedRecords>(new SharedRecords(std::move(main), std::move(shelf), std::move(clock), std::move(options)));
  const auto beginning = begin_together(ranks, *records->shelf_);
  if (!beginning) return beginning.status();
  records->session_.id.assign(beginning->id.begin(), beginning->id.end());
  records->session_.rank = uint32_t(ranks.rank());
  records->session_.ranks = uint32_t(ranks.size());
  records->session_.node = records->clock_->node();
  records->key_ = layout::session_key(records->session_.id);
  records->number_ = beginning->number;
  records->note_.session = records->session_.id;
  records->find_log(ranks);
  records->clock_->estimate(ranks, 8);
  // A note says that this session exists: it puts older ones out of date, or says where its records are.
  records->note_written_ = beginning->leftovers || records->options_.common_log;
  Status status;
  if (ranks.rank() == 0 && records->note_written_) status = records->write_note(true);
  HF_TRY(exchange::agree(ranks, status));
  if (beginning->leftovers)
    notice = fmt::format(
        "{}: an earlier run left records of its shared file pointer in {}; they are not merged into what this run "
        "writes; holdfast merge --help says what can be done with them",
        records->session_.path, records->shelf_->where());
  return records;
}

// One that serves several files of this process, or one of its own.
void SharedRecords::find_log(exchange::Exchange& ranks) {
  log_ = options_.common_log;
  if (!log_) {
    log_ = std::make_shared<RecordLog>(shelf_, fmt::format("{}.{}", prefix(), ranks.rank()), ranks.rank(), options_.staging);
    return;
  }
  const std::string& place = options_.common_log_place;
  for (const Bytes& bytes : ranks.all_gather(std::as_bytes(std::span(place))))
    note_.logs.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string SharedRecords::prefix() const { return fmt::format("{:08}-{}", number_, session_.id); }

Status SharedRecords::write_note(bool durable) { return shelf_->put(prefix() + ".note", layout::encode(note_), durable); }

Entry SharedRecords::entry_of(EntryKind kind) const {
  Entry entry;
  entry.kind = kind;
  entry.session = key_;
  entry.id = next_id_;
  entry.rank = session_.rank;
  entry.segment = segment_;
  entry.collective = collective_;
  entry.base = base_;
  return entry;
}

Status SharedRecords::append(ByteView packed, const std::function<Result<uint64_t>()>& pointer) {
  std::lock_guard guard(mutex_);
  return append_stamped(packed, clock_->now(), pointer);
}

Status SharedRecords::append_stamped(ByteView packed, Stamp stamp, const std::function<Result<uint64_t>()>& pointer) {
  if (packed.empty()) return Status();
  if (!base_known_) {
    auto at = pointer();
    if (!at) return at.status();
    base_ = *at;
    base_known_ = true;
    session_.clock_offset_ns = clock_->offset_ns();
    session_.clock_uncertainty_ns = clock_->uncertainty_ns();
  }
  if (!log_->described(key_, view_version_)) HF_TRY(log_->describe(key_, view_version_, entry_of(EntryKind::session), layout::encode(session_)));
  Entry entry = entry_of(EntryKind::record);
  entry.timestamp_ns = stamp.time_ns;
  entry.uncertainty_ns = stamp.uncertainty_ns;
  auto done = log_->append(entry, packed);
  if (!done) return done.status();
  logged_ = true;
  if (pending_bytes_ == 0) pending_from_ = uncached_to_ = done->position;
  // What is in memory is the newer part: the rest is read from the log again when it is wanted.
  if (cache_.size() >= options_.max_metadata_records) {
    uncached_to_ = done->position;
    cache_.clear();
  }
  cache_.push_back(
      {entry.collective, entry.timestamp_ns, entry.id, entry.rank, done->position + layout::entry_header_bytes, packed.size(), done->checksum});
  ++next_id_;
  pending_bytes_ += packed.size();
  largest_uncertainty_ns_ = std::max(largest_uncertainty_ns_, stamp.uncertainty_ns);
  return Status();
}

uint64_t SharedRecords::pending_bytes() {
  std::lock_guard guard(mutex_);
  return pending_bytes_;
}

Status SharedRecords::place_own(const std::function<Result<uint64_t>(uint64_t)>& claim, const Place& place) {
  {
    std::lock_guard guard(mutex_);
    if (pending_bytes_ == 0) return Status();
    auto at = claim(pending_bytes_);
    if (!at) return at.status();
    Entry claimed = entry_of(EntryKind::claimed);
    claimed.base = *at;
    auto done = log_->append(claimed, {});
    if (!done) return done.status();
    if (synced_) HF_TRY(log_->sync());  // as in merge(): their places must be as durable as they are
    OwnSource source(*this);
    claims_.push_back({*at, {}});
    for (;;) {
      auto more = source.next(65536);
      if (!more) return more.status();
      if (more->empty()) break;
      claims_.back().records.insert(claims_.back().records.end(), more->begin(), more->end());
    }
    forget_pending();
  }
  return place_claimed(place);
}

Status SharedRecords::place_claimed(const Place& place) {
  constexpr uint64_t piece_bytes = 8 << 20;
  std::lock_guard guard(mutex_);
  while (!claims_.empty()) {
    const Claim& claim = claims_.front();
    OwnSource source(*this);
    Bytes packed;
    uint64_t at = claim.at;
    for (size_t i = 0; i < claim.records.size();) {
      size_t end = i;
      uint64_t bytes = 0;
      while (end < claim.records.size() && (end == i || bytes + claim.records[end].length <= piece_bytes)) bytes += claim.records[end++].length;
      packed.resize(bytes);
      HF_TRY(source.read(std::span(claim.records).subspan(i, end - i), packed));
      const Extent extent{at, bytes};
      HF_TRY(place(std::span(&extent, 1), packed));
      at += bytes;
      i = end;
    }
    Entry placed = entry_of(EntryKind::placed);
    placed.id = claim.records.empty() ? 0 : claim.records.back().id + 1;
    (void)log_->append(placed, {});  // without it they are placed once more after a crash
    claims_.erase(claims_.begin());
  }
  return Status();
}

Status SharedRecords::note_pointer(uint64_t at) {
  std::lock_guard guard(mutex_);
  Entry moved = entry_of(EntryKind::pointer);
  moved.base = at;
  HF_TRY(log_->describe(key_, view_version_, entry_of(EntryKind::session), layout::encode(session_)));
  auto done = log_->append(moved, {});
  logged_ = true;
  return done.status();
}

Status SharedRecords::append_ordered(exchange::Exchange& ranks, ByteView packed, const std::function<Result<uint64_t>()>& pointer) {
  clock_->refresh(ranks);
  Stamp stamp = clock_->now();
  const Bytes first = std::move(ranks.all_gather(std::as_bytes(std::span(&stamp, 1)))[0]);
  std::memcpy(&stamp, first.data(), sizeof stamp);
  Status status;
  {
    // A collective number of its own: ordered data comes after all that was written before the call, and before what follows.
    std::lock_guard guard(mutex_);
    ++collective_;
    status = append_stamped(packed, stamp, pointer);
    ++collective_;
  }
  return exchange::agree(ranks, status);
}

bool SharedRecords::anything_pending(exchange::Exchange& ranks) {
  std::unique_lock guard(mutex_);
  const bool mine = pending_bytes_ > 0 || !claims_.empty();
  guard.unlock();
  return ranks.all_max({mine})[0] != 0;
}

void SharedRecords::pass_collective() {
  std::lock_guard guard(mutex_);
  begin_segment();
}

bool SharedRecords::used(exchange::Exchange& ranks) {
  std::unique_lock guard(mutex_);
  const bool mine = logged_;
  guard.unlock();
  return ranks.all_max({mine})[0] != 0;
}

void SharedRecords::forget_pending() {
  cache_.clear();
  pending_bytes_ = 0;
  first_pending_id_ = next_id_;
}

void SharedRecords::begin_segment() {
  ++segment_;
  ++collective_;
  base_known_ = false;
}

Result<Merged> SharedRecords::merge(exchange::Exchange& ranks, uint64_t base, const Place& place, const std::function<Status()>& make_durable) {
  clock_->refresh(ranks);
  // Claims first: independent, so each piece goes by itself on this rank.
  std::unique_lock guard(mutex_);
  const std::vector<int64_t> facts = ranks.all_max({pending_bytes_ > 0, synced_, !claims_.empty()});
  guard.unlock();
  if (facts[2]) HF_TRY(exchange::agree(ranks, place_claimed(place)));
  guard.lock();
  if (facts[0] == 0) {
    begin_segment();
    return Merged{base, 0, 0};
  }
  Status status;
  if (pending_bytes_ > 0 && base != base_) {
    Entry moved = entry_of(EntryKind::pointer);
    moved.base = base;
    status = log_->append(moved, {}).status();
  }
  // Places follow from all that is pending: what a sync has promised must not move for want of what it has not.
  if (status.ok() && facts[1] && pending_bytes_ > 0) status = log_->sync();
  if (status = exchange::agree(ranks, status); !status.ok()) return status;
  OwnSource source(*this);
  RecordSource* const sources[] = {&source};
  auto merged = merge_records(ranks, sources, base, place);
  if (!merged) return merged;
  if (facts[1] && make_durable) {
    if (status = make_durable(); !status.ok()) return status;  // collective, so on all ranks
  }
  if (pending_bytes_ > 0) {
    Entry placed = entry_of(EntryKind::placed);
    placed.id = 0;
    (void)log_->append(placed, {});  // an entry of the next segment says the same
  }
  forget_pending();
  synced_ = false;
  begin_segment();
  return merged;
}

void SharedRecords::set_view(layout::SessionView view) {
  std::lock_guard guard(mutex_);
  session_.view = std::move(view);
  ++view_version_;
}

Status SharedRecords::forget_placed(exchange::Exchange& ranks) {
  std::lock_guard guard(mutex_);
  const std::vector<int64_t> facts = ranks.all_max({logged_, pending_bytes_ > 0 || !claims_.empty()});
  if (facts[0] == 0 || facts[1] != 0) return Status();
  // One small durable text, and no log counts any more, whichever of them a power failure brings back.
  Status status;
  note_.settled_segments = segment_;
  note_written_ = true;
  if (ranks.rank() == 0) status = write_note(true);
  HF_TRY(exchange::agree(ranks, status));
  log_->release(key_);
  logged_ = false;
  return Status();
}

Status SharedRecords::sync(exchange::Exchange& ranks) {
  std::lock_guard guard(mutex_);
  const Status status = logged_ ? log_->sync() : Status();
  synced_ = synced_ || logged_;
  ++collective_;
  return exchange::agree(ranks, status);
}

Status SharedRecords::close(exchange::Exchange& ranks, bool main_is_durable, const layout::PathState& state) {
  const bool left = anything_pending(ranks);
  Status status;
  if (!left) {
    if (main_is_durable) {
      status = forget_placed(ranks);
    } else {
      log_->release(key_);  // a fast close promises nothing against power failures
    }
    ranks.barrier();  // the note goes last: as long as any log is there it says that none counts
    if (ranks.rank() == 0 && note_written_) shelf_->remove(prefix() + ".note");
  } else {
    if (status = sync(ranks); !status.ok()) return status;
    note_.closed = true;
    note_.main = state;
    if (ranks.rank() == 0) status = write_note(true);
    status = exchange::agree(ranks, status);
  }
  if (ranks.rank() == 0) shelf_->tidy();
  return status;
}

}  // namespace holdfast::layers
