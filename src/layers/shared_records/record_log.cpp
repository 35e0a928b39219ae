#include "layers/shared_records/record_log.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

namespace holdfast::layers {

using target::OpenMode;

namespace {

constexpr uint64_t stage_alignment = 4096;  // of memory pages, at the least

iovec vector_of(ByteView bytes) { return {const_cast<std::byte*>(bytes.data()), bytes.size()}; }

}  // namespace

RecordLog::RecordLog(std::shared_ptr<Shelf> shelf, std::string name, int first_holder, Staging staging)
    : shelf_(std::move(shelf)), name_(std::move(name)), first_holder_(first_holder), staging_(staging) {}

RecordLog::~RecordLog() {
  for (Copy& copy : copies_)
    if (const auto& lane = shelf_->holders()[size_t(copy.holder)].lane) lane->let_go(std::move(copy.object));
}

Result<RecordLog::Copy> RecordLog::open_copy(int holder) {
  const Shelf::Holder& place = shelf_->holders()[size_t(holder)];
  auto opened = std::make_shared<std::shared_ptr<target::Object>>();
  const Status status = place.run([opened, target = place.target, name = place.prefix + object_name_] {
    auto object = target->open(name, OpenMode::create);
    if (object.ok()) *opened = *object;
    return object.status();
  });
  if (!status.ok()) return status;
  return Copy{holder, *opened};
}

// A new generation on as many holders as can be had, at least one.
Status RecordLog::begin() {
  HF_TRY(shelf_->prepare_again());
  object_name_ = fmt::format("{}.{}", name_, generation_);
  key_ = layout::log_key(object_name_);
  end_ = staged_from_ = 0;
  Status last(Kind::lost, shelf_->where() + ": no target is left for the records of this process");
  const int holders = int(shelf_->holders().size());
  for (int i = 0; i < holders && int(copies_.size()) < shelf_->copies(); ++i) {
    const int holder = (first_holder_ + i) % holders;
    if (failed_.contains(holder)) continue;
    auto copy = open_copy(holder);
    if (copy.ok()) copies_.push_back(std::move(*copy));
    else last = copy.status();
  }
  if (copies_.empty()) {
    object_name_.clear();
    return last;
  }
  // So that nobody merges it while this process lives; a file system without locks does without.
  const Shelf::Holder& first = shelf_->holders()[size_t(copies_[0].holder)];
  auto lock = std::make_shared<std::shared_ptr<target::Lock>>();
  (void)first.run([lock, target = first.target, name = first.prefix + object_name_] {
    auto locked = target->try_lock(name);
    if (locked.ok()) *lock = std::move(*locked);
    return Status();
  });
  lock_ = *lock;
  return Status();
}

Status RecordLog::duplicate(const Copy& from, const Copy& to) {
  constexpr uint64_t step = 4 << 20;
  auto buffer = std::make_shared<Bytes>(std::min(step, end_));
  for (uint64_t at = 0; at < end_; at += buffer->size()) {
    const uint64_t bytes = std::min<uint64_t>(buffer->size(), end_ - at);
    HF_TRY(shelf_->holders()[size_t(from.holder)].run([buffer, at, bytes, object = from.object] {
      iovec vector{buffer->data(), bytes};
      auto got = object->read(at, std::span<const iovec>(&vector, 1));
      if (got.ok()) std::memset(buffer->data() + *got, 0, bytes - *got);
      return got.status();
    }));
    HF_TRY(shelf_->holders()[size_t(to.holder)].run([buffer, at, bytes, object = to.object] {
      iovec vector{buffer->data(), bytes};
      return object->write(at, std::span<const iovec>(&vector, 1));
    }));
  }
  return Status();
}

// Holders in the place of those that were lost, with all that was written so far.
void RecordLog::replace_lost(size_t wanted) {
  const int holders = int(shelf_->holders().size());
  for (int i = 0; i < holders && copies_.size() < wanted; ++i) {
    const int holder = (first_holder_ + i) % holders;
    const bool used = std::any_of(copies_.begin(), copies_.end(), [&](const Copy& c) { return c.holder == holder; });
    if (used || failed_.contains(holder)) continue;
    auto copy = open_copy(holder);
    if (copy.ok() && duplicate(copies_.front(), *copy).ok()) copies_.push_back(std::move(*copy));
    else failed_.insert(holder);
  }
}

Status RecordLog::write_copies(uint64_t at, std::span<const iovec> vectors) {
  if (local()) return copies_[0].object->write(at, vectors);
  // A call that outlives its deadline must not read the program's buffer: it owns a copy.
  auto owned = std::make_shared<Bytes>();
  for (const iovec& v : vectors) owned->insert(owned->end(), static_cast<std::byte*>(v.iov_base), static_cast<std::byte*>(v.iov_base) + v.iov_len);
  std::vector<std::shared_ptr<target::Ticket>> tickets;
  for (const Copy& copy : copies_) {
    auto call = [owned, at, object = copy.object] {
      iovec vector{owned->data(), owned->size()};
      return object->write(at, std::span<const iovec>(&vector, 1));
    };
    const auto& lane = shelf_->holders()[size_t(copy.holder)].lane;
    tickets.push_back(lane ? lane->submit(call) : target::make_inline_lane()->submit(call));
  }
  std::vector<Status> outcomes;
  for (auto& ticket : tickets) outcomes.push_back(ticket->wait());
  const bool any = std::any_of(outcomes.begin(), outcomes.end(), [](const Status& s) { return s.ok(); });
  if (!any) return outcomes.front();
  const size_t wanted = copies_.size();
  for (size_t i = outcomes.size(); i-- > 0;)
    if (!outcomes[i].ok()) {
      failed_.insert(copies_[i].holder);
      copies_.erase(copies_.begin() + std::ptrdiff_t(i));
    }
  if (copies_.size() < wanted) {
    const uint64_t before = end_;
    end_ = at + owned->size();  // what is duplicated
    replace_lost(wanted);
    end_ = before;
  }
  return Status();
}

// ---------------------------------------------------------------- the stage

bool RecordLog::can_stage(uint64_t payload_bytes) {
  if (payload_bytes + layout::entry_header_bytes > staging_.bytes / 8 || !local()) return false;
  if (stage_at_ == 0 && ++small_entries_ == staging_.after_entries) make_stage();
  return stage_at_ != 0;
}

// An entry of its own that readers pass over. Where it cannot be had, appends go on as before.
void RecordLog::make_stage() {
  const uint64_t alignment = std::max<uint64_t>(stage_alignment, uint64_t(sysconf(_SC_PAGESIZE)));
  const uint64_t at = round_up(end_ + layout::entry_header_bytes, alignment);
  if (!copies_[0].object->map(at, staging_.bytes)) return;
  layout::Entry stage;
  stage.kind = layout::EntryKind::stage;
  stage.length = at + staging_.bytes - (end_ + layout::entry_header_bytes);
  std::array<std::byte, layout::entry_header_bytes> header;
  layout::encode_entry(key_, end_, stage, header.data());
  const iovec vector = vector_of(header);
  if (!copies_[0].object->write(end_, std::span<const iovec>(&vector, 1)).ok()) return;
  end_ = staged_from_ = layout::entry_end(end_, stage.length);
  stage_at_ = at;
  staged_.reserve(staging_.bytes);
}

Status RecordLog::append_staged(ByteView header, ByteView payload) {
  const uint64_t bytes = layout::entry_end(end_, payload.size()) - end_;
  if (staged_.size() + bytes > staging_.bytes) HF_TRY(move_staged());
  const iovec vectors[2] = {vector_of(header), vector_of(payload)};
  HF_TRY(copies_[0].object->write(stage_at_ + staged_.size(), vectors));
  staged_.insert(staged_.end(), header.begin(), header.end());
  staged_.insert(staged_.end(), payload.begin(), payload.end());
  staged_.resize(staged_.size() + bytes - header.size() - payload.size());
  return Status();
}

// To their places. What is in the stage is valid until new entries overwrite it.
Status RecordLog::move_staged() {
  if (!staged_.empty()) {
    const iovec vector = vector_of(staged_);
    HF_TRY(copies_[0].object->write(staged_from_, std::span<const iovec>(&vector, 1)));
    staged_.clear();
  }
  staged_from_ = end_;
  return Status();
}

// Together with what is staged before it.
Status RecordLog::append_in_place(ByteView header, ByteView payload) {
  const iovec vectors[3] = {vector_of(staged_), vector_of(header), vector_of(payload)};
  const size_t first = staged_.empty() ? 1 : 0;
  HF_TRY(write_copies(first == 0 ? staged_from_ : end_, std::span<const iovec>(vectors).subspan(first, (payload.empty() ? 2 : 3) - first)));
  staged_.clear();
  staged_from_ = layout::entry_end(end_, payload.size());
  return Status();
}

Result<RecordLog::Appended> RecordLog::append(layout::Entry entry, ByteView payload) {
  std::lock_guard guard(mutex_);
  if (object_name_.empty())
    if (Status status = begin(); !status.ok()) return status;
  const bool staged = can_stage(payload.size());
  entry.length = payload.size();
  entry.checksum = layout::entry_checksum(key_, payload);
  std::array<std::byte, layout::entry_header_bytes> header;
  layout::encode_entry(key_, end_, entry, header.data());
  const Appended at{end_, entry.checksum};
  if (Status status = staged ? append_staged(header, payload) : append_in_place(header, payload); !status.ok()) return status;
  end_ = layout::entry_end(end_, payload.size());
  described_.try_emplace(entry.session, 0);  // from now on this session needs the log
  return at;
}

bool RecordLog::described(uint64_t session, uint64_t version) {
  std::lock_guard guard(mutex_);
  auto it = described_.find(session);
  return !object_name_.empty() && it != described_.end() && it->second == version;
}

Status RecordLog::describe(uint64_t session, uint64_t version, const layout::Entry& entry, const std::string& text) {
  if (described(session, version)) return Status();
  auto done = append(entry, std::as_bytes(std::span(text)));
  if (!done) return done.status();
  std::lock_guard guard(mutex_);
  described_[session] = version;
  return Status();
}

// Zeros behind the object's end.
Status RecordLog::read_copy(const Copy& copy, uint64_t offset, ByteSpan into) const {
  auto read = [object = copy.object, offset](std::byte* to, size_t bytes) {
    iovec vector{to, bytes};
    auto got = object->read(offset, std::span<const iovec>(&vector, 1));
    if (got.ok()) std::memset(to + *got, 0, bytes - *got);
    return got.status();
  };
  const Shelf::Holder& holder = shelf_->holders()[size_t(copy.holder)];
  if (!holder.lane) return read(into.data(), into.size());
  auto buffer = std::make_shared<Bytes>(into.size());
  HF_TRY(holder.run([buffer, read] { return read(buffer->data(), buffer->size()); }));
  std::memcpy(into.data(), buffer->data(), into.size());
  return Status();
}

// From where the places end that entries have been moved to; zeros behind the log's end.
void RecordLog::read_staged(uint64_t offset, ByteSpan into) const {
  const ByteView there = offset - staged_from_ < staged_.size() ? ByteView(staged_).subspan(offset - staged_from_) : ByteView();
  const size_t bytes = std::min(there.size(), into.size());
  std::copy_n(there.begin(), bytes, into.begin());
  std::fill(into.begin() + std::ptrdiff_t(bytes), into.end(), std::byte{0});
}

Status RecordLog::read_checked(uint64_t offset, ByteSpan into, const std::function<bool()>& sound) {
  std::lock_guard guard(mutex_);
  Status last(Kind::corrupt, fmt::format("{}: the record at byte {} of this process's log fails its checksum", shelf_->where(), offset));
  const ByteSpan in_place = into.first(std::min<uint64_t>(into.size(), staged_from_ > offset ? staged_from_ - offset : 0));
  for (const Copy& copy : copies_) {
    const Status status = in_place.empty() ? Status() : read_copy(copy, offset, in_place);
    read_staged(offset + in_place.size(), into.subspan(in_place.size()));
    if (!status.ok()) last = status;
    else if (!sound || sound()) return status;
  }
  return last;
}

Status RecordLog::sync() {
  std::lock_guard guard(mutex_);
  HF_TRY(move_staged());
  Status last;
  size_t durable = 0;
  for (const Copy& copy : copies_) {
    const Status status = shelf_->holders()[size_t(copy.holder)].run([object = copy.object] {
      HF_TRY(object->still_there());
      return object->sync();
    });
    if (status.ok()) ++durable;
    else last = status;
  }
  return durable > 0 ? Status() : last;
}

void RecordLog::release(uint64_t session) {
  std::lock_guard guard(mutex_);
  described_.erase(session);
  if (described_.empty() && !object_name_.empty()) drop();
}

void RecordLog::drop() {
  for (Copy& copy : copies_) {
    const Shelf::Holder& holder = shelf_->holders()[size_t(copy.holder)];
    if (holder.lane) holder.lane->let_go(std::move(copy.object));
  }
  copies_.clear();
  staged_.clear();
  stage_at_ = small_entries_ = 0;
  lock_.reset();
  (void)shelf_->remove_emptied(object_name_);
  object_name_.clear();
  ++generation_;
}

}  // namespace holdfast::layers
