// Lane: the way to one target, for callers that must not wait for ever. Calls of one lane run in order, one at a
// time; lanes of different targets run side by side. A call that outlives the deadline sets the lane aside. Its
// caller gets Kind::timed_out, and so does every later call, until the hung call has ended and `readmit` is asked.
#pragma once
#include <chrono>
#include <functional>
#include <memory>

#include "base/status.hpp"

namespace holdfast::target {

class LaneGroup;

// One submitted call. Whatever the call touches must live as long as the ticket's own copy of the closure.
// Capture by value or by shared_ptr, for a hung call outlives its caller.
class Ticket {
 public:
  virtual ~Ticket() = default;
  virtual Status wait() = 0;  // the call's own status, or timed_out
  // The same, but the lane is given up only when the group says so too (lane_group.hpp); null: at its deadline.
  virtual Status wait_in(LaneGroup*) { return wait(); }
};

class Lane {
 public:
  virtual ~Lane() = default;
  virtual std::shared_ptr<Ticket> submit(std::function<Status()> call) = 0;
  virtual bool set_aside() const = 0;
  // Takes the lane back into use if no call is outstanding any more; true if it may be used.
  virtual bool readmit() = 0;
  // Destroys `thing`, if this was the last of it, in the lane after all that is outstanding. Closing a file can block like any
  // other call. Waits for that no longer than the deadline, and not at all when the lane is set aside.
  virtual void let_go(std::shared_ptr<const void> thing) = 0;
  // No call is expected soon: nobody stands by for one after what is outstanding. The next one takes longer to begin.
  virtual void rest() {}
  // Since when a call is being made (nothing: none is), when one ended last, and how many failed after their deadline. Never waits.
  struct Pulse {
    std::chrono::steady_clock::time_point busy_since, last_end;
    uint64_t late_failures = 0;
  };
  virtual Pulse pulse() const { return {}; }
  Status run(std::function<Status()> call) { return submit(std::move(call))->wait(); }
};

// Calls are made in a companion (companion.hpp), started at the first call and again in a forked child. The process ends although a
// call of its may never end.
std::shared_ptr<Lane> make_companion_lane(std::string name, std::chrono::milliseconds deadline);
// For those who use lanes in a forked child's handler: handlers there run in the order of their registration, so register it after this.
void watch_forks();
// Ends the companions that are in no call, and returns when the kernel has done with them. They hold this process's descriptors: a lock of the
// program's would outlive it for a moment. For the process's end and before an exec; a later call starts its companion again.
void end_idle_companions();
// Runs each call at once in the caller: deterministic, for the simulator. A call that answers Kind::timed_out with no
// errno (a filter that "hangs") sets the lane aside like a hung one. It may be readmitted at once.
std::shared_ptr<Lane> make_inline_lane();

}  // namespace holdfast::target
