// What one file's calls have cost below the front end: the system's calls, and the time in the protected layer. The rooms that make
// those calls add to the meter that the thread carries; whose it is, and who reads it, they do not know.
#pragma once
#include <atomic>
#include <cstdint>
#include <ctime>

namespace holdfast {

struct Meter {
  using Count = std::atomic<uint64_t>;
  Count read_calls{0}, read_bytes{0}, read_ns{0};
  Count write_calls{0}, write_bytes{0}, write_ns{0};
  Count sync_calls{0}, sync_ns{0};
  Count other_calls{0};                    // opens, sizes, truncations ...
  Count layer_ns{0};                       // in the protected layer, the calls below it included
  Count read_modify_writes{0};             // old data read because only a part of it changes
  Count buffers_used{0}, buffer_bytes{0};  // the most at once
  Count prefetches{0}, preflushes{0};      // reads before they were asked for, writes before they had to be

  static void add(Count& count, uint64_t by) { count.fetch_add(by, std::memory_order_relaxed); }
  static void raise(Count& count, uint64_t to) {
    uint64_t before = count.load(std::memory_order_relaxed);
    while (before < to && !count.compare_exchange_weak(before, to, std::memory_order_relaxed)) {
    }
  }
};

// Null while nobody measures. A lane hands it on to the companion that makes the call.
inline thread_local Meter* current_meter __attribute__((tls_model("initial-exec"))) = nullptr;

class MeterScope {
 public:
  explicit MeterScope(Meter* meter) : before_(current_meter) { current_meter = meter; }
  ~MeterScope() { current_meter = before_; }
  MeterScope(const MeterScope&) = delete;
  MeterScope& operator=(const MeterScope&) = delete;

 private:
  Meter* before_;
};

inline uint64_t meter_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000u + uint64_t(now.tv_nsec);
}

// Counts one call of the system and its time, where somebody measures. Where `bytes` is given, a positive answer is their number.
template <class Call>
auto metered(Meter::Count Meter::*calls, Meter::Count Meter::*nanoseconds, Meter::Count Meter::*bytes, Call call) {
  Meter* const meter = current_meter;
  if (!meter) [[likely]]
    return call();
  const uint64_t begin = meter_now_ns();
  const auto answer = call();
  Meter::add(meter->*calls, 1);
  Meter::add(meter->*nanoseconds, meter_now_ns() - begin);
  if (bytes && answer > 0) Meter::add(meter->*bytes, uint64_t(answer));
  return answer;
}

// Time in a layer: of the outermost such scope of the thread.
class LayerTime {
 public:
  LayerTime() : meter_(inside ? nullptr : current_meter), begin_(meter_ ? meter_now_ns() : 0) {
    if (meter_) inside = true;
  }
  ~LayerTime() {
    if (!meter_) return;
    inside = false;
    Meter::add(meter_->layer_ns, meter_now_ns() - begin_);
  }
  LayerTime(const LayerTime&) = delete;
  LayerTime& operator=(const LayerTime&) = delete;

 private:
  static inline thread_local bool inside __attribute__((tls_model("initial-exec"))) = false;
  Meter* meter_;
  uint64_t begin_;
};

}  // namespace holdfast
