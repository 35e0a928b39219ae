#include "engine/members.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/vectors.hpp"

namespace holdfast::engine {

using target::OpenMode;

namespace {

Status forget_objects(MemberHandle& handle) {
  handle.forget_all();
  return {};
}

}  // namespace

target::Target& MemberHandle::target() {
  (void)write_held();
  return *target_;
}

void MemberHandle::begin_ahead(uint64_t round) {
  std::lock_guard guard(brief_);
  ahead_round_ = round;
  ahead_.reset();
}

// Any other failure may be another one by the time it is asked for.
void MemberHandle::keep_ahead(uint64_t round, const std::string& name, Result<Bytes> content) {
  if (!content.ok() && content.status().kind() != Kind::not_found) return;
  std::lock_guard guard(brief_);
  if (round == ahead_round_) ahead_.emplace(name, std::move(content));
}

void MemberHandle::read_ahead(uint64_t round, const std::string& name, uint64_t max_bytes) { keep_ahead(round, name, target().get(name, max_bytes)); }

Result<std::unique_ptr<target::Lock>> MemberHandle::lock_and_read_ahead(uint64_t round, const std::string& lock, target::Hold hold,
                                                                        const std::string& name, uint64_t max_bytes) {
  auto locked = target().try_lock_with({lock, hold, "", name, max_bytes});
  if (!locked.ok()) return locked.status();
  if (locked->object) keep_ahead(round, name, std::move(*locked->object));
  return std::move(locked->lock);
}

Result<Bytes> MemberHandle::get(const std::string& name, uint64_t max_bytes) {
  {
    std::lock_guard guard(brief_);
    const auto ahead = std::exchange(ahead_, {});
    if (ahead && ahead->first == name) return ahead->second;
  }
  return target().get(name, max_bytes);
}

void MemberHandle::hold_writes(bool hold) {
  std::lock_guard guard(brief_);
  holds_ = hold && target_->is_far();
}

std::vector<MemberHandle::Held> MemberHandle::take_held() {
  std::lock_guard guard(brief_);
  held_bytes_ = 0;
  return std::exchange(held_, {});
}

bool MemberHandle::hold_back(const std::vector<target::Target::ObjectWrite>& writes) {
  uint64_t bytes = 0;
  for (const auto& one : writes) bytes += total_bytes(one.from);
  std::lock_guard guard(brief_);
  if (!holds_ || held_bytes_ + bytes > most_held_bytes) return false;
  for (const auto& one : writes) {
    Bytes copy;
    for (const iovec& part : one.from) {
      const auto* from = static_cast<const std::byte*>(part.iov_base);
      copy.insert(copy.end(), from, from + part.iov_len);
    }
    held_.push_back({one.object, one.offset, std::move(copy)});
  }
  held_bytes_ += bytes;
  return true;
}

namespace {

// Of what is held; they are valid as long as that is.
template <class Held>
std::vector<target::Target::ObjectWrite> writes_of(std::vector<Held>& held) {
  std::vector<target::Target::ObjectWrite> writes;
  for (Held& one : held) writes.push_back({one.object, one.offset, {{one.bytes.data(), one.bytes.size()}}});
  return writes;
}

}  // namespace

Status MemberHandle::write_held() {
  std::vector<Held> held = take_held();
  if (held.empty()) return Status();
  Status status = target_->write_together(writes_of(held));
  std::lock_guard guard(brief_);
  if (held_failure_.ok()) held_failure_ = status;
  return status;
}

Result<std::shared_ptr<target::Object>> MemberHandle::object(const std::string& name, OpenMode mode) {
  HF_TRY(write_held());
  return open_once(name, mode);
}

Result<std::shared_ptr<target::Object>> MemberHandle::open_once(const std::string& name, OpenMode mode) {
  std::lock_guard guard(mutex_);
  auto it = objects_.find(name);
  const bool want_write = mode != OpenMode::read;
  if (it != objects_.end() && (it->second.writable || !want_write)) return it->second.object;
  const target::Pages pages = catalog::Located::holds_records(name) ? target::Pages::shared : target::Pages::own;
  auto opened = mode == OpenMode::create ? target_->open_to_write(name, pages) : target_->open(name, mode, pages);
  if (!opened.ok()) return opened.status();
  Open& entry = objects_[name];
  entry.object = *opened;
  entry.writable = want_write;
  return *opened;
}

Status MemberHandle::write(const std::string& name, uint64_t offset, std::span<const iovec> from) {
  auto opened = object(name, OpenMode::create);
  if (!opened.ok()) return opened.status();
  {
    std::lock_guard guard(mutex_);
    objects_[name].dirty = true;
  }
  return (*opened)->write(offset, from);
}

Status MemberHandle::write_together(std::vector<Write> writes) {
  std::vector<target::Target::ObjectWrite> all;
  for (Write& one : writes) {
    auto opened = open_once(one.name, OpenMode::create);
    if (!opened.ok()) return opened.status();
    {
      std::lock_guard guard(mutex_);
      objects_[one.name].dirty = true;
    }
    all.push_back({std::move(*opened), one.offset, std::move(one.from)});
  }
  if (hold_back(all)) return Status();
  HF_TRY(write_held());
  return target_->write_together(all);
}

Status MemberHandle::write(const std::string& name, uint64_t offset, ByteView from) {
  iovec vector{const_cast<std::byte*>(from.data()), from.size()};
  return write(name, offset, std::span<const iovec>(&vector, 1));
}

Status MemberHandle::read(const std::string& name, uint64_t offset, ByteSpan into) {
  auto opened = object(name, OpenMode::read);
  if (!opened.ok()) return opened.status();
  iovec vector{into.data(), into.size()};
  auto got = (*opened)->read(offset, std::span<const iovec>(&vector, 1));
  if (!got.ok()) return got.status();
  std::fill(into.begin() + ptrdiff_t(*got), into.end(), std::byte(0));
  return Status();
}

Result<std::vector<uint64_t>> MemberHandle::checksums(const std::string& name, const target::CheckedBlocks& blocks) {
  if (target_->address_for_agents().empty()) return Status(Kind::unsupported, "it is read");
  auto opened = object(name, OpenMode::read);
  if (!opened.ok()) return opened.status();
  return (*opened)->checksums(blocks);
}

bool MemberHandle::read_cached(const std::string& name, uint64_t offset, ByteSpan into) {
  std::shared_ptr<target::Object> object;
  {
    std::unique_lock guard(mutex_, std::try_to_lock);  // a lane may hang in an open with the lock held
    if (!guard) return false;
    auto it = objects_.find(name);
    if (it == objects_.end()) return false;
    object = it->second.object;
  }
  iovec vector{into.data(), into.size()};
  return object->read_cached(offset, std::span<const iovec>(&vector, 1)) == into.size();
}

std::vector<std::pair<std::string, std::shared_ptr<target::Object>>> MemberHandle::dirty_objects() {
  std::lock_guard guard(mutex_);
  std::vector<std::pair<std::string, std::shared_ptr<target::Object>>> dirty;
  for (auto& [name, open] : objects_)
    if (open.dirty) dirty.emplace_back(name, open.object);
  return dirty;
}

// What handles of before had written went there when they were let go of.
Status MemberHandle::write_back() {
  if (!target_->caches_by_node()) return Status();
  for (auto& [name, object] : dirty_objects()) HF_TRY(object->write_back());
  return Status();
}

// Who cannot stage puts as ever, and says then why that fails.
void MemberHandle::stage(const std::string& name, const std::string& scratch, ByteView content) {
  if (const Staged former = take_staged(); !former.scratch.empty()) (void)target_->remove(former.scratch);
  if (!target_->moves_objects()) return;
  if (!write(scratch, 0, content).ok()) {
    forget(scratch);
    (void)target_->remove(scratch);
    return;
  }
  std::lock_guard guard(mutex_);
  staged_ = {name, scratch, Bytes(content.begin(), content.end()), false};
}

MemberHandle::Staged MemberHandle::take_staged() {
  std::lock_guard guard(mutex_);
  if (!staged_.scratch.empty()) objects_.erase(staged_.scratch);
  return std::exchange(staged_, {});
}

Status MemberHandle::put(const std::string& name, ByteView content, bool durable) {
  HF_TRY(write_held());
  const Staged staged = take_staged();
  if (staged.scratch.empty()) return target_->put(name, content, durable);
  const bool same = staged.name == name && std::equal(staged.content.begin(), staged.content.end(), content.begin(), content.end());
  if (same && staged.durable) return target_->move(staged.scratch, name);
  (void)target_->remove(staged.scratch);
  return target_->put(name, content, durable);
}

Status MemberHandle::settle(bool durable) {
  const auto dirty = dirty_objects();
  std::vector<std::shared_ptr<target::Object>> written, left;
  for (auto& [name, object] : dirty) written.push_back(object);
  {
    std::lock_guard guard(mutex_);
    for (auto& [name, object] : dirty_before_) left.push_back(object);
  }
  std::vector<Held> held = take_held();
  HF_TRY(held.empty() ? target_->settle(written, left, durable) : target_->write_and_settle(writes_of(held), written, left, durable));
  {
    std::lock_guard guard(brief_);
    HF_TRY(std::exchange(held_failure_, {}));
  }
  if (!durable) return write_back();
  // Only a durable settle makes an object clean: after a fast close nothing claims that the device has it.
  std::lock_guard guard(mutex_);
  for (auto& [name, object] : dirty) objects_[name].dirty = false;
  staged_.durable = true;
  dirty_before_.clear();
  return Status();
}

Status MemberHandle::resize(const std::string& name, uint64_t bytes, bool exact) {
  auto opened = object(name, exact ? OpenMode::create : OpenMode::write);
  if (opened.status().kind() == Kind::not_found) return target_->check_identity();
  if (!opened.ok()) return opened.status();
  auto now = (*opened)->size();
  if (!now.ok()) return now.status();
  if (*now <= bytes && !(exact && *now < bytes)) return Status();
  {
    std::lock_guard guard(mutex_);
    objects_[name].dirty = true;
  }
  return (*opened)->truncate(bytes);
}

Status MemberHandle::grow(const std::string& name, uint64_t bytes) {
  auto opened = object(name, OpenMode::create);
  if (!opened.ok()) return opened.status();
  {
    // Also where it is long enough: it may be so by another's write, which no power cut is to take back.
    std::lock_guard guard(mutex_);
    objects_[name].dirty = true;
  }
  auto now = (*opened)->size();
  if (!now.ok()) return now.status();
  return *now >= bytes ? Status() : (*opened)->grow(bytes);
}

void MemberHandle::forget(const std::string& name) {
  std::lock_guard guard(mutex_);
  objects_.erase(name);
}

void MemberHandle::forget_all() {
  (void)write_back();  // what fails here fails at the next settle, too
  std::lock_guard guard(mutex_);
  for (auto& [name, open] : objects_)
    if (open.dirty) dirty_before_.emplace(name, std::move(open.object));
  objects_.clear();
}

Members::Members(const catalog::Located& located, int patience) : may_miss_(located.manifest.geometry.scheme.m), patient_(patience > 1) {
  std::vector<std::shared_ptr<target::Lane>> lanes;
  for (const catalog::Member& member : located.members) lanes.push_back(member.usable() ? member.lane : nullptr);
  lanes_ = std::make_shared<target::LaneGroup>(std::move(lanes), may_miss_, patience);
  for (const catalog::Member& member : located.members) {
    State state;
    state.path = located.place_of(int(members_.size()));
    if (member.usable()) {
      state.handle = std::make_shared<MemberHandle>(member.target);
      state.lane = lanes_->lane(int(members_.size()));
      state.late_failures = state.lane->pulse().late_failures;
    } else {
      state.why = member.lost.sentence();
      lost_.add(int(members_.size()));
    }
    members_.push_back(std::move(state));
  }
}

Members::~Members() {
  for (State& state : members_)
    if (state.lane) state.lane->let_go(std::move(state.handle));
}

bool Members::can_stage() const {
  return std::any_of(members_.begin(), members_.end(), [](const State& state) { return state.handle && state.handle->moves_objects(); });
}

void Members::lose(int member, const std::string& why) {
  late_.remove(member);
  if (!available(member)) return;
  lost_.add(member);
  lanes_->lose(member);
  members_[member].why = why;
}

// A target's own ETIMEDOUT is an error like any other.
void Members::lose(int member, const Status& why) {
  const bool was_there = available(member), late = patient_ && why.kind() == Kind::timed_out && why.sys_errno() == 0;
  if (late && !was_there) return;
  if (was_there && why.sys_errno() == EMFILE) unopened_.add(member);
  lose(member, why.sentence());
  if (!late) return;
  late_since_ += late_.none();
  late_.add(member);
}

std::vector<int64_t> Members::losses() const {
  std::vector<int64_t> states(members_.size());
  for (int member = 0; member < count(); ++member) states[size_t(member)] = available(member) ? 0 : late_.has(member) ? 1 : 2;
  return states;
}

// An fsync tells a loss once: what it said after its deadline counts, for the next one will say nothing of it.
bool Members::has_come_back(int member) {
  if (!late_.has(member) || !members_[member].lane->readmit()) return false;
  if (members_[member].lane->pulse().late_failures == members_[member].late_failures) return true;
  give_up(member);
  return false;
}

void Members::take_back(int member) {
  late_.remove(member);
  lost_.remove(member);
  unopened_.remove(member);
  lanes_->take_back(member);
  members_[member].why.clear();
}

void Members::nudge() {
  for (int member = 0; member < count(); ++member)
    if (available(member) && members_[member].lane->pulse().busy_since == std::chrono::steady_clock::time_point())
      (void)submit(member, [](MemberHandle& handle) { return handle.target().check_identity(); });
}

std::shared_ptr<target::Ticket> Members::submit(int member, MemberCall call) {
  return members_[member].lane->submit([handle = members_[member].handle, call = std::move(call)] { return call(*handle); });
}

target::AskedLock Members::ask_for_lock(int member, const std::string& name, target::Hold hold, const Ahead& ahead) {
  const State& state = members_[member];
  return {state.lane, [handle = state.handle, round = ahead_round_, name, hold, object = ahead.name(member), most = ahead.max_bytes] {
            return handle->lock_and_read_ahead(round, name, hold, object, most);
          }};
}

void Members::read_ahead(int member, const Ahead& ahead) {
  (void)submit(member, [round = ahead_round_, name = ahead.name(member), most = ahead.max_bytes](MemberHandle& handle) {
    handle.read_ahead(round, name, most);
    return Status();  // who asks for it once more hears why not
  });
}

void Members::forget_ahead() {
  ++ahead_round_;
  for (State& state : members_)
    if (state.handle) state.handle->begin_ahead(ahead_round_);
}

void Members::hold_writes(bool hold) {
  for (State& state : members_)
    if (state.handle) state.handle->hold_writes(hold);
}

target::AskedLock Members::ask_for_lock(int member, const std::string& name, target::Hold hold) {
  const State& state = members_[member];
  return target::AskedLock(state.lane, state.handle->shared_target(), name, hold);
}

void Members::reopen_objects() {
  ask_each([](int) -> MemberCall { return forget_objects; });
}

void Members::reopen_cached() { ask_each(where_nodes_cache(forget_objects)); }

void Members::write_back() {
  each(where_nodes_cache([](MemberHandle& handle) { return handle.write_back(); }));
}

std::function<MemberCall(int)> Members::where_nodes_cache(MemberCall call) const {
  return [this, call = std::move(call)](int member) { return members_[member].handle->caches_by_node() ? call : MemberCall(); };
}

void Members::wait_all(Begun& tickets) {
  for (auto& [member, ticket] : tickets)
    if (Status status = ticket->wait(); !status.ok()) {
      if (status.kind() == Kind::no_space && available(member)) full_.add(member);
      lose(member, status);
    }
  tickets.clear();
}

Members::Begun Members::begin_each(const std::function<MemberCall(int)>& make_call) {
  Begun tickets;
  for (int member = 0; member < count(); ++member)
    if (available(member))
      if (MemberCall call = make_call(member)) tickets.emplace_back(member, submit(member, std::move(call)));
  return tickets;
}

void Members::each(const std::function<MemberCall(int)>& make_call) {
  Begun tickets = begin_each(make_call);
  wait_all(tickets);
}

std::vector<Status> Members::ask_each(const std::function<MemberCall(int)>& make_call) {
  std::vector<std::shared_ptr<target::Ticket>> tickets(count());
  for (int member = 0; member < count(); ++member)
    if (available(member))
      if (MemberCall call = make_call(member)) tickets[member] = submit(member, std::move(call));
  std::vector<Status> answers(count());
  for (int member = 0; member < count(); ++member) {
    if (!tickets[member]) continue;
    answers[member] = tickets[member]->wait();
    // A target that hangs is set aside at once; other errors are the asker's to judge.
    if (answers[member].kind() == Kind::timed_out) lose(member, answers[member]);
  }
  return answers;
}

int Members::reason() const { return lost_count() > may_miss_ && (lost_ - unopened_).count() <= may_miss_ ? EMFILE : 0; }

std::string Members::describe_lost() const {
  std::string text;
  for (int member = 0; member < count(); ++member) {
    const std::string& why = available(member) ? members_[member].read_failure : members_[member].why;
    if (!available(member) || !why.empty()) text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", members_[member].path, why);
  }
  return text;
}

}  // namespace holdfast::engine
