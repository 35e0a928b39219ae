// A target that misbehaves on order, for tests: any Target wrapped so that chosen calls fail, hang, lie, or are slow,
// and so that what was called is on record. One plan may serve several targets; then they share its counters.
//
//   auto plan = std::make_shared<FaultPlan>();
//   plan->add({.kind = CallKind::write, .nth = n});          // fail the n-th write with EIO
//   auto target = make_filtered(make_memory_target(directory, "a"), plan);
//   ... for (n = 1; ; ++n) { ...; if (!plan->fired()) break; }
#pragma once
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "target/target.hpp"

namespace holdfast::target {

enum class CallKind : uint8_t {
  any,
  open,
  read,
  write,
  sync,
  truncate,
  size,
  still_there,
  put,
  get,
  make_directory,
  remove,
  list,
  space,
  identity,
  lock,
  map
};
const char* call_name(CallKind kind);

enum class Effect : uint8_t {
  fail,           // the call is not made and answers `sys_errno`
  time_out,       // not made; answers Kind::timed_out as a hung call does: for the inline lane
  hang,           // blocks for `hang_for`, or until release(), then is made: for the thread lane
  short_write,    // write: the first half arrives, then it answers `sys_errno`
  flip_bit,       // bit `bit` (modulo the length) of what is written or read is turned, and nobody told
  lose,           // write, put, truncate: answers ok and does nothing; the object's next sync, or the put if durable, answers `sys_errno`
  lose_silently,  // the same, and sync answers ok
};

constexpr uint64_t kForever = UINT64_MAX;

struct InjectedFault {
  CallKind kind = CallKind::any;
  uint64_t nth = 1;    // the first call that is hit, counted from 1 when the fault is added
  uint64_t count = 1;  // how many are hit from there on, or kForever
  Effect effect = Effect::fail;
  int sys_errno = EIO;
  std::string name_contains = {};  // only calls on names that contain this; "" is all
  uint64_t bit = 0;
  std::chrono::milliseconds hang_for = std::chrono::hours(24);
};

struct CallRecord {
  std::string target;  // describe() of the wrapped one
  CallKind kind = CallKind::any;
  std::string name;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool operator==(const CallRecord&) const = default;
};

// Every method may be called while calls run. Off, a plan neither counts nor hits; it goes on logging and limiting.
class FaultPlan {
 public:
  size_t add(InjectedFault fault);  // its number, for fired()
  void clear();                     // no faults, counters at zero
  void set_enabled(bool enabled);

  uint64_t fired() const;                               // how often any fault has hit, since clear()
  uint64_t fired(size_t fault) const;                   // how often this one has
  uint64_t calls(CallKind kind = CallKind::any) const;  // how many calls were counted, since clear()

  void release();            // hung calls go on now, and no further call hangs until the next add()
  uint64_t hanging() const;  // how many calls hang now

  // Every call takes at least `latency`; reads, writes, puts and gets pass at no more than this rate in sum (0: no limit).
  void set_limits(std::chrono::microseconds latency, uint64_t bytes_per_second);

  void set_logging(bool logging);
  std::vector<CallRecord> log() const;
  void clear_log();

  // What a filter does with the call that it is about to make. Blocks for hangs and limits.
  struct Verdict {
    bool hit = false;
    InjectedFault fault;
    bool is(Effect effect) const { return hit && fault.effect == effect; }
  };
  Verdict before(CallRecord call);

 private:
  struct Planned {
    InjectedFault fault;
    uint64_t seen = 0;
    uint64_t fired = 0;
  };
  using Clock = std::chrono::steady_clock;

  Verdict judge(const CallRecord& call);
  Clock::time_point reserve(uint64_t bytes);

  mutable std::mutex mutex_;
  std::condition_variable released_;
  std::vector<Planned> faults_;
  std::vector<CallRecord> log_;
  std::vector<uint64_t> calls_ = std::vector<uint64_t>(32);
  uint64_t fired_ = 0, hanging_ = 0;
  uint64_t release_round_ = 0;
  bool enabled_ = true, logging_ = false, hangs_released_ = false;
  std::chrono::microseconds latency_{0};
  uint64_t bytes_per_second_ = 0;
  Clock::time_point next_free_{};
};

std::shared_ptr<Target> make_filtered(std::shared_ptr<Target> inner, std::shared_ptr<FaultPlan> plan);

}  // namespace holdfast::target
