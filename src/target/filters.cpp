#include "target/filters.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "base/vectors.hpp"

namespace holdfast::target {

const char* call_name(CallKind kind) {
  static const char* const names[] = {"any", "open",           "read",   "write", "sync",  "truncate", "size", "still_there", "put",
                                      "get", "make_directory", "remove", "list",  "space", "identity", "lock", "map"};
  return names[static_cast<int>(kind)];
}

// --- the plan

size_t FaultPlan::add(InjectedFault fault) {
  std::lock_guard guard(mutex_);
  hangs_released_ = false;
  faults_.push_back({std::move(fault), 0, 0});
  return faults_.size() - 1;
}

void FaultPlan::clear() {
  std::lock_guard guard(mutex_);
  faults_.clear();
  std::fill(calls_.begin(), calls_.end(), 0);
  fired_ = 0;
}

void FaultPlan::set_enabled(bool enabled) {
  std::lock_guard guard(mutex_);
  enabled_ = enabled;
}

uint64_t FaultPlan::fired() const {
  std::lock_guard guard(mutex_);
  return fired_;
}

uint64_t FaultPlan::fired(size_t fault) const {
  std::lock_guard guard(mutex_);
  return fault < faults_.size() ? faults_[fault].fired : 0;
}

uint64_t FaultPlan::calls(CallKind kind) const {
  std::lock_guard guard(mutex_);
  return calls_[static_cast<size_t>(kind)];
}

void FaultPlan::release() {
  std::lock_guard guard(mutex_);
  hangs_released_ = true;
  ++release_round_;
  released_.notify_all();
}

uint64_t FaultPlan::hanging() const {
  std::lock_guard guard(mutex_);
  return hanging_;
}

void FaultPlan::set_limits(std::chrono::microseconds latency, uint64_t bytes_per_second) {
  std::lock_guard guard(mutex_);
  latency_ = latency;
  bytes_per_second_ = bytes_per_second;
  next_free_ = {};
}

void FaultPlan::set_logging(bool logging) {
  std::lock_guard guard(mutex_);
  logging_ = logging;
}

std::vector<CallRecord> FaultPlan::log() const {
  std::lock_guard guard(mutex_);
  return log_;
}

void FaultPlan::clear_log() {
  std::lock_guard guard(mutex_);
  log_.clear();
}

// Counts the call for every fault that it concerns; the first fault that is due decides.
FaultPlan::Verdict FaultPlan::judge(const CallRecord& call) {
  Verdict verdict;
  if (!enabled_) return verdict;
  ++calls_[static_cast<size_t>(CallKind::any)];
  ++calls_[static_cast<size_t>(call.kind)];
  for (Planned& planned : faults_) {
    const InjectedFault& fault = planned.fault;
    if (fault.kind != CallKind::any && fault.kind != call.kind) continue;
    if (call.name.find(fault.name_contains) == std::string::npos) continue;
    ++planned.seen;
    const bool due = planned.seen >= fault.nth && planned.seen - fault.nth < fault.count;
    if (!due || verdict.hit || (fault.effect == Effect::hang && hangs_released_)) continue;
    ++planned.fired;
    ++fired_;
    verdict = {true, fault};
  }
  return verdict;
}

// When a call that moves `bytes` may end: one after another at the rate of the plan.
FaultPlan::Clock::time_point FaultPlan::reserve(uint64_t bytes) {
  const auto now = Clock::now();
  auto end = now + latency_;
  if (bytes_per_second_ && bytes) {
    const auto takes = std::chrono::nanoseconds(static_cast<int64_t>(1e9 * bytes / bytes_per_second_));
    next_free_ = std::max(next_free_, now) + takes;
    end = std::max(end, next_free_);
  }
  return end;
}

FaultPlan::Verdict FaultPlan::before(CallRecord call) {
  std::unique_lock guard(mutex_);
  Verdict verdict = judge(call);
  const bool limited = latency_.count() || bytes_per_second_;
  const auto end = limited ? reserve(call.bytes) : Clock::time_point();
  if (logging_) log_.push_back(std::move(call));
  if (verdict.is(Effect::hang)) {
    ++hanging_;
    const uint64_t round = release_round_;
    released_.wait_for(guard, verdict.fault.hang_for, [&] { return release_round_ != round; });
    --hanging_;
  }
  guard.unlock();
  if (limited) std::this_thread::sleep_until(end);
  return verdict;
}

// --- the filter

namespace {

void flip(ByteSpan bytes, uint64_t bit) {
  if (bytes.empty()) return;
  bit %= bytes.size() * 8;
  bytes[bit / 8] ^= std::byte(1u << (bit % 8));
}

Status injected(const FaultPlan::Verdict& verdict, const CallRecord& call) {
  const std::string what = std::string(call_name(call.kind)) + " of " + call.target + "/" + call.name;
  if (verdict.is(Effect::time_out)) return Status(Kind::timed_out, what + " hangs");
  return Status::from_errno(verdict.fault.sys_errno, what);
}

// The answer of a call that is not made; ok where it is.
Status refused(const FaultPlan::Verdict& verdict, const CallRecord& call) {
  if (verdict.is(Effect::fail) || verdict.is(Effect::time_out)) return injected(verdict, call);
  return {};
}

bool loses(const FaultPlan::Verdict& verdict) { return verdict.is(Effect::lose) || verdict.is(Effect::lose_silently); }

class FilteredObject final : public Object {
 public:
  FilteredObject(std::shared_ptr<Object> inner, std::shared_ptr<FaultPlan> plan, std::string target, std::string name)
      : inner_(std::move(inner)), plan_(std::move(plan)), target_(std::move(target)), name_(std::move(name)) {}

  Result<size_t> read(uint64_t offset, std::span<const iovec> into) override {
    const CallRecord call{target_, CallKind::read, name_, offset, total_bytes(into)};
    auto verdict = plan_->before(call);
    HF_TRY(refused(verdict, call));
    Result<size_t> got = inner_->read(offset, into);
    if (got.ok() && verdict.is(Effect::flip_bit)) flip_in_vectors(into, *got, verdict.fault.bit);
    return got;
  }

  Status write(uint64_t offset, std::span<const iovec> from) override {
    const CallRecord call{target_, CallKind::write, name_, offset, total_bytes(from)};
    auto verdict = plan_->before(call);
    HF_TRY(refused(verdict, call));
    if (loses(verdict)) return lose(verdict);
    if (!verdict.is(Effect::short_write) && !verdict.is(Effect::flip_bit)) return inner_->write(offset, from);
    Bytes changed = concatenated(from);
    if (verdict.is(Effect::flip_bit)) flip(changed, verdict.fault.bit);
    if (verdict.is(Effect::short_write)) changed.resize(changed.size() / 2);
    const iovec one{changed.data(), changed.size()};
    HF_TRY(inner_->write(offset, std::span<const iovec>(&one, 1)));
    return verdict.is(Effect::short_write) ? injected(verdict, call) : Status();
  }

  bool map(uint64_t offset, uint64_t bytes) override {
    const auto verdict = plan_->before({target_, CallKind::map, name_, offset, bytes});
    return !verdict.hit && inner_->map(offset, bytes);
  }

  Status write_back() override { return inner_->write_back(); }

  // As with a real device, the loss is told once; a sync after that answers ok.
  Status sync() override {
    const CallRecord call{target_, CallKind::sync, name_, 0, 0};
    HF_TRY(refused(plan_->before(call), call));
    if (int lost = lost_errno_.exchange(0)) return Status::from_errno(lost, "sync of " + target_ + "/" + name_);
    return inner_->sync();
  }

  Status truncate(uint64_t size) override {
    const CallRecord call{target_, CallKind::truncate, name_, size, 0};
    auto verdict = plan_->before(call);
    HF_TRY(refused(verdict, call));
    return loses(verdict) ? lose(verdict) : inner_->truncate(size);
  }

  Status grow(uint64_t size) override {
    const CallRecord call{target_, CallKind::truncate, name_, size, 0};
    auto verdict = plan_->before(call);
    HF_TRY(refused(verdict, call));
    return loses(verdict) ? lose(verdict) : inner_->grow(size);
  }

  Result<uint64_t> size() override {
    const CallRecord call{target_, CallKind::size, name_, 0, 0};
    HF_TRY(refused(plan_->before(call), call));
    return inner_->size();
  }

  Status still_there() override {
    const CallRecord call{target_, CallKind::still_there, name_, 0, 0};
    HF_TRY(refused(plan_->before(call), call));
    return inner_->still_there();
  }

 private:
  Status lose(const FaultPlan::Verdict& verdict) {
    if (verdict.is(Effect::lose)) lost_errno_ = verdict.fault.sys_errno;
    return {};
  }

  static void flip_in_vectors(std::span<const iovec> into, size_t filled, uint64_t bit) {
    if (filled == 0) return;
    uint64_t at = bit / 8 % filled;
    for (const iovec& v : into) {
      if (at < v.iov_len) return flip(ByteSpan(static_cast<std::byte*>(v.iov_base) + at, 1), bit % 8);
      at -= v.iov_len;
    }
  }

  std::shared_ptr<Object> inner_;
  std::shared_ptr<FaultPlan> plan_;
  std::string target_, name_;
  std::atomic<int> lost_errno_{0};
};

class FilteredTarget final : public Target {
 public:
  FilteredTarget(std::shared_ptr<Target> inner, std::shared_ptr<FaultPlan> plan)
      : inner_(std::move(inner)), plan_(std::move(plan)), label_(inner_->describe()) {}

  std::string describe() const override { return label_; }
  bool caches_by_node() const override { return inner_->caches_by_node(); }

  Result<std::shared_ptr<Object>> open(const std::string& name, OpenMode mode, Pages pages) override {
    HF_TRY(pass(CallKind::open, name));
    auto object = inner_->open(name, mode, pages);
    if (!object.ok()) return object;
    return std::shared_ptr<Object>(std::make_shared<FilteredObject>(std::move(*object), plan_, label_, name));
  }

  Result<Stripes> make_striped(const std::string& name, const StripeWish& wish) override {
    HF_TRY(pass(CallKind::open, name));
    return inner_->make_striped(name, wish);
  }
  Result<Stripes> stripes(const std::string& name) override {
    HF_TRY(pass(CallKind::open, name));
    return inner_->stripes(name);
  }

  Status put(const std::string& name, ByteView content, bool durable) override {
    const CallRecord call{label_, CallKind::put, name, 0, content.size()};
    auto verdict = plan_->before(call);
    HF_TRY(refused(verdict, call));
    if (verdict.is(Effect::short_write)) return injected(verdict, call);  // a put is whole or not at all
    if (loses(verdict)) return durable && verdict.is(Effect::lose) ? injected(verdict, call) : Status();
    if (!verdict.is(Effect::flip_bit)) return inner_->put(name, content, durable);
    Bytes changed(content.begin(), content.end());
    flip(changed, verdict.fault.bit);
    return inner_->put(name, changed, durable);
  }

  bool moves_objects() const override { return inner_->moves_objects(); }
  Status move(const std::string& from, const std::string& to) override {
    const CallRecord call{label_, CallKind::put, to, 0, 0};
    auto verdict = plan_->before(call);
    HF_TRY(refused(verdict, call));
    if (loses(verdict)) return verdict.is(Effect::lose) ? injected(verdict, call) : Status();
    return inner_->move(from, to);
  }

  Status link(const std::string& from, const std::string& to) override {
    const CallRecord call{label_, CallKind::put, to, 0, 0};
    auto verdict = plan_->before(call);
    HF_TRY(refused(verdict, call));
    if (loses(verdict)) return verdict.is(Effect::lose) ? injected(verdict, call) : Status();
    return inner_->link(from, to);
  }

  Result<Bytes> get(const std::string& name, uint64_t max_bytes) override {
    const CallRecord call{label_, CallKind::get, name, 0, 0};
    auto verdict = plan_->before(call);
    HF_TRY(refused(verdict, call));
    Result<Bytes> content = inner_->get(name, max_bytes);
    if (content.ok() && verdict.is(Effect::flip_bit)) flip(*content, verdict.fault.bit);
    return content;
  }

  Status make_directory(const std::string& name) override {
    HF_TRY(pass(CallKind::make_directory, name));
    return inner_->make_directory(name);
  }
  Status remove(const std::string& name) override {
    HF_TRY(pass(CallKind::remove, name));
    return inner_->remove(name);
  }
  Status remove_directory(const std::string& name) override {
    HF_TRY(pass(CallKind::remove, name));
    return inner_->remove_directory(name);
  }
  Status set_aside(const std::string& name) override {
    HF_TRY(pass(CallKind::remove, name));
    return inner_->set_aside(name);
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    HF_TRY(pass(CallKind::list, directory));
    return inner_->list(directory);
  }
  Status get_each(const EachWish& wish, const TellOfEach& tell) override {
    HF_TRY(pass(CallKind::list, wish.directory));
    return inner_->get_each(wish, [&](const std::string& name, Result<Bytes> content) {
      const CallRecord call{label_, CallKind::get, path_of_each(wish, name), 0, 0};
      auto verdict = plan_->before(call);
      if (const Status status = refused(verdict, call); !status.ok()) return tell(name, status);
      if (content.ok() && verdict.is(Effect::flip_bit)) flip(*content, verdict.fault.bit);
      tell(name, std::move(content));
    });
  }
  Result<Space> space() override {
    HF_TRY(pass(CallKind::space, ""));
    return inner_->space();
  }
  Status check_identity() override {
    HF_TRY(pass(CallKind::identity, ""));
    return inner_->check_identity();
  }
  Result<std::unique_ptr<Lock>> try_lock(const std::string& name, Hold hold) override {
    HF_TRY(pass(CallKind::lock, name));
    return inner_->try_lock(name, hold);
  }
  Result<std::vector<std::string>> break_locks(const std::string& directory) override {
    HF_TRY(pass(CallKind::lock, directory));
    return inner_->break_locks(directory);
  }

 private:
  Status pass(CallKind kind, const std::string& name) {
    const CallRecord call{label_, kind, name, 0, 0};
    return refused(plan_->before(call), call);
  }

  std::shared_ptr<Target> inner_;
  std::shared_ptr<FaultPlan> plan_;
  std::string label_;
};

}  // namespace

std::shared_ptr<Target> make_filtered(std::shared_ptr<Target> inner, std::shared_ptr<FaultPlan> plan) {
  return std::make_shared<FilteredTarget>(std::move(inner), std::move(plan));
}

}  // namespace holdfast::target
