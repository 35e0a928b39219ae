#include "layers/shared_records/clock.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "catalog/user_files.hpp"

namespace holdfast::layers {

namespace {

constexpr double assumed_drift = 200e-6;
constexpr int64_t refresh_after_ns = 1'000'000'000;

class SystemTime final : public TimeSource {
 public:
  int64_t now_ns() override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  }
  // A time namespace shifts the clock of the processes in it.
  std::string node() override {
    auto boot = catalog::read_small("/proc/sys/kernel/random/boot_id", 4096);
    auto space = catalog::read_link("/proc/self/ns/time");
    if (!boot.ok()) return "unknown";
    while (!boot->empty() && boot->back() == '\n') boot->pop_back();
    return *boot + (space.ok() ? " " + *space : "");
  }
};

int64_t number_in(ByteView bytes) {
  int64_t number = 0;
  if (bytes.size() >= sizeof number) std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

}  // namespace

std::shared_ptr<TimeSource> system_time() { return std::make_shared<SystemTime>(); }

void Clock::estimate(exchange::Exchange& ranks, int round_trips) {
  if (ranks.size() == 1) return;
  const auto mine = std::as_bytes(std::span(node_));
  const Bytes reference = std::move(ranks.all_gather(mine)[0]);
  const bool mine_exact = node_ != "unknown" && std::equal(reference.begin(), reference.end(), mine.begin(), mine.end());
  if (ranks.all_max({!mine_exact})[0] == 0) return;  // one node: nothing to measure
  Bounds bounds{0, INT64_MIN, INT64_MAX};
  for (int trip = 0; trip < round_trips; ++trip) {
    const int64_t sent = source_->now_ns();
    (void)ranks.all_gather(std::as_bytes(std::span(&sent, 1)));
    const int64_t read = source_->now_ns();  // on rank 0: after everybody's message
    const int64_t theirs = number_in(ranks.all_gather(std::as_bytes(std::span(&read, 1)))[0]);
    const int64_t received = source_->now_ns();
    bounds.at = received;
    bounds.low = std::max(bounds.low, theirs - received);
    bounds.high = std::min(bounds.high, theirs - sent);
  }
  if (bounds.low > bounds.high) std::swap(bounds.low, bounds.high);  // drift within the trips exceeded the bounds
  std::lock_guard guard(mutex_);
  exact_ = mine_exact;
  if (!exact_) take(bounds);
}

void Clock::refresh(exchange::Exchange& ranks) {
  if (ranks.size() == 1) return;
  bool old = false;
  {
    std::lock_guard guard(mutex_);
    old = !exact_ && source_->now_ns() - last_.at > refresh_after_ns;
  }
  if (ranks.all_max({old})[0] != 0) estimate(ranks, 4);
}

// The drift follows from the first and the newest bounds; each can be wrong by its radius.
void Clock::take(const Bounds& bounds) {
  last_ = bounds;
  if (!have_first_) {
    first_ = bounds;
    have_first_ = true;
    return;
  }
  const double between = double(bounds.at - first_.at);
  const double error = (double(first_.radius()) + double(bounds.radius())) / std::max(between, 1.0);
  if (error >= drift_error_) return;
  drift_ = std::clamp(double(bounds.middle() - first_.middle()) / between, -assumed_drift, assumed_drift);
  drift_error_ = error + 1e-7;  // and what temperature does to it
}

int64_t Clock::offset_at(int64_t at) const { return exact_ ? 0 : last_.middle() + int64_t(drift_ * double(at - last_.at)); }
uint64_t Clock::uncertainty_at(int64_t at) const {
  return exact_ ? 0 : last_.radius() + uint64_t(drift_error_ * double(std::abs(at - last_.at))) + 1;
}

Stamp Clock::now() {
  std::lock_guard guard(mutex_);
  const int64_t at = source_->now_ns();
  const int64_t time = at + offset_at(at);
  Stamp stamp{uint64_t(std::max<int64_t>(time, 1)), uncertainty_at(at)};
  if (stamp.time_ns <= latest_) {  // an estimate was corrected backwards
    stamp.uncertainty_ns += latest_ + 1 - stamp.time_ns;
    stamp.time_ns = latest_ + 1;
  }
  latest_ = stamp.time_ns;
  return stamp;
}

int64_t Clock::offset_ns() {
  std::lock_guard guard(mutex_);
  return offset_at(source_->now_ns());
}
uint64_t Clock::uncertainty_ns() {
  std::lock_guard guard(mutex_);
  return uncertainty_at(source_->now_ns());
}

}  // namespace holdfast::layers
