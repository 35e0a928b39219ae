#include "target/lane.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "base/meter.hpp"
#include "target/companion.hpp"
#include "target/lane_group.hpp"

namespace holdfast::target {

namespace {

using Clock = std::chrono::steady_clock;

// How often this process and its ancestors have forked since the first lane. A lane whose number differs lives in a child, where its companion does
// not exist and its mutex may be locked for ever.
std::atomic<uint64_t> fork_generation{0};

// Calls of this process that have outlived their deadline and are still held by the kernel.
std::atomic<int> hung_calls{0};

__attribute__((destructor)) void end_without_hung_calls() {
  if (hung_calls.load() > 0) leave_companions_behind();
}

Status hung(const std::string& name) { return Status(Kind::timed_out, "a call to " + name + " did not come back in time; the target was set aside"); }

struct State;

// Those of this process whose companions were started.
struct Started {
  std::mutex mutex;
  std::vector<std::weak_ptr<State>> states;
};
// Used before this library's own variables begin, too: a program's standard input may be a protected file.
constinit std::atomic<Started*> started{nullptr};

Started& started_here() {
  Started* all = started;
  if (all) return *all;
  auto* const fresh = new Started;
  if (started.compare_exchange_strong(all, fresh)) return *fresh;
  delete fresh;
  return *all;
}

class CompanionTicket final : public Ticket {
 public:
  CompanionTicket(std::shared_ptr<State> state, std::function<Status()> call) : state_(std::move(state)), call_(std::move(call)) {}
  Status wait() override { return wait_in(nullptr); }
  Status wait_in(LaneGroup* group) override;

 private:
  friend struct State;
  friend class CompanionLane;
  // Never changes, and `call_` is touched by the companion only once it is queued; the rest under State::mutex.
  std::shared_ptr<State> state_;
  std::function<Status()> call_;
  bool done_ = false;
  bool outlived_ = false;               // its deadline, while it was being made
  Meter* const meter_ = current_meter;  // the submitter's
  bool even_when_aside_ = false;        // is done some time, even if it was answered timed_out before it began
  Status outcome_;
  std::condition_variable ended_;
};

// One per lane and process. The companion holds a reference, so that a hung call can outlive the lane and delay nobody.
struct State {
  State(std::string lane_name, std::chrono::milliseconds call_deadline)
      : name(std::move(lane_name)), deadline(call_deadline), generation(fork_generation.load()) {}

  const std::string name;
  const std::chrono::milliseconds deadline;
  const uint64_t generation;
  std::atomic<bool> set_aside{false};
  std::atomic<Clock::time_point> busy_since{Clock::time_point()}, last_end{Clock::time_point()};  // Lane::pulse
  std::atomic<uint64_t> late_failures{0};

  std::mutex mutex;
  std::condition_variable work;
  std::deque<std::shared_ptr<CompanionTicket>> queue;
  std::shared_ptr<CompanionTicket> current;  // what the companion is in
  Clock::time_point current_since;
  bool companion_started = false;
  bool lane_gone = false;
  bool noted = false;           // in `started`
  bool companion_goes = false;  // as soon as nothing is queued; the next call starts another

  bool of_this_process() const { return generation == fork_generation.load(std::memory_order_relaxed); }

  // The companion's life: calls in order until the lane is gone and nothing is left.
  void serve() {
    std::unique_lock guard(mutex);
    for (;;) {
      work.wait(guard, [&] { return !queue.empty() || lane_gone || companion_goes; });
      if (queue.empty()) return void(companion_started = companion_goes = false);
      current = std::move(queue.front());
      queue.pop_front();
      busy_since = current_since = Clock::now();
      std::shared_ptr<CompanionTicket> ticket = current;
      guard.unlock();
      const MeterScope measured(ticket->meter_);
      Status outcome = ticket->call_();
      ticket->call_ = nullptr;  // buffers are let go before the caller goes on
      guard.lock();
      if (ticket->outlived_) --hung_calls, late_failures += !outcome.ok();
      current = nullptr;
      last_end = Clock::now();
      busy_since = Clock::time_point();
      finish(*ticket, std::move(outcome));
    }
  }

  // A verdict that was given (timed out) stands, whatever the call says later.
  static void finish(CompanionTicket& ticket, Status outcome) {
    if (ticket.done_) return;
    ticket.outcome_ = std::move(outcome);
    ticket.done_ = true;
    ticket.ended_.notify_all();
  }

  // The call in the companion has outlived the deadline: it and all behind it fail. Those behind it never run, but for what
  // is only let go.
  void put_aside(std::deque<std::shared_ptr<CompanionTicket>>& dropped) {
    set_aside = true;
    if (current && !current->outlived_) {
      current->outlived_ = true;
      ++hung_calls;
    }
    if (current) finish(*current, hung(name));
    for (auto& ticket : queue) finish(*ticket, hung(name));
    dropped.swap(queue);
    for (auto& ticket : dropped) {
      if (ticket->even_when_aside_) queue.push_back(ticket);
    }
  }

  // errno, 0 if there is somebody to make the calls.
  static int start(const std::shared_ptr<State>& state) {
    auto* mine = new std::shared_ptr<State>(state);
    const int failed = start_companion(&State::companion_main, mine);
    if (failed) delete mine;
    return failed;
  }
  // The caller holds the mutex. errno if there is nobody to serve it.
  int enqueue(const std::shared_ptr<State>& self, const std::shared_ptr<CompanionTicket>& ticket) {
    if (!companion_started) {
      if (int failed = start(self)) return failed;
      companion_started = true;
      if (!std::exchange(noted, true)) note(self);
    }
    queue.push_back(ticket);
    return 0;
  }
  static void note(const std::shared_ptr<State>& state) {
    Started& all = started_here();
    std::lock_guard guard(all.mutex);
    std::erase_if(all.states, [](const std::weak_ptr<State>& one) { return one.expired(); });
    all.states.push_back(state);
  }
  // It goes as soon as it is in no call. False: it is in one.
  bool let_companion_go() {
    std::lock_guard guard(mutex);
    companion_goes = companion_started;
    work.notify_all();
    return !current;
  }
  static void companion_main(void* argument) {
    std::unique_ptr<std::shared_ptr<State>> mine(static_cast<std::shared_ptr<State>*>(argument));
    (*mine)->serve();
  }
};

Status CompanionTicket::wait_in(LaneGroup* group) {
  if (!state_) return outcome_;  // refused at submission
  if (!state_->of_this_process()) {
    return Status(Kind::timed_out, "a call to " + state_->name + " was begun before the process forked");
  }
  std::deque<std::shared_ptr<CompanionTicket>> dropped;  // their closures go after the mutex is free
  std::unique_lock guard(state_->mutex);
  // A process that was stopped (SIGSTOP, a debugger) finds all its deadlines passed when it goes on: what ends within the
  // grace was not hung.
  const auto grace = std::min<std::chrono::milliseconds>(state_->deadline / 4, std::chrono::milliseconds(100));
  auto deadline = state_->deadline;  // the call's next one
  std::shared_ptr<CompanionTicket> before;
  while (!done_) {
    std::shared_ptr<CompanionTicket> watched = state_->current;
    if (watched != before) deadline = state_->deadline;
    before = watched;
    const auto verdict = (watched ? state_->current_since : Clock::now()) + deadline;
    if (ended_.wait_until(guard, verdict, [&] { return done_; })) break;
    if (!watched || state_->current != watched) continue;
    if (ended_.wait_for(guard, grace, [&] { return done_; })) break;
    if (state_->current != watched) continue;
    const auto age = Clock::now() - state_->current_since;
    if (group && group->waits_on(age, state_->deadline)) deadline = (age / state_->deadline + 1) * state_->deadline;
    else state_->put_aside(dropped);
  }
  return outcome_;
}

class CompanionLane final : public Lane {
 public:
  CompanionLane(std::string name, std::chrono::milliseconds deadline) : here_(new Here{std::make_shared<State>(std::move(name), deadline)}) {}

  ~CompanionLane() override {
    Here* here = here_.load();
    if (!here->state->of_this_process()) return;  // what the parent's companion held cannot be taken apart: left alone
    {
      std::lock_guard guard(here->state->mutex);
      here->state->lane_gone = true;
      here->state->work.notify_all();
    }
    delete here;
  }

  std::shared_ptr<Ticket> submit(std::function<Status()> call) override {
    std::shared_ptr<State> state = state_of_this_process();
    if (state->set_aside) return refused(hung(state->name));
    auto ticket = std::make_shared<CompanionTicket>(state, std::move(call));
    std::unique_lock guard(state->mutex);
    if (state->set_aside) return refused(hung(state->name));
    if (int failed = state->enqueue(state, ticket)) {
      return refused(Status::from_errno(failed, "cannot start a process for " + state->name));
    }
    guard.unlock();
    state->work.notify_one();
    return ticket;
  }

  void let_go(std::shared_ptr<const void> thing) override {
    if (!thing) return;
    std::shared_ptr<State> state = state_of_this_process();
    auto ticket = std::make_shared<CompanionTicket>(state, [thing = std::move(thing)]() mutable {
      thing.reset();
      return Status();
    });
    ticket->even_when_aside_ = true;
    std::unique_lock guard(state->mutex);
    const bool wait = !state->set_aside;
    const bool queued = state->enqueue(state, ticket) == 0;
    guard.unlock();
    if (!queued) return;  // nobody to be had: it is destroyed here
    state->work.notify_one();
    if (wait) (void)ticket->wait();
  }

  bool set_aside() const override { return here_.load()->state->set_aside; }

  void rest() override { (void)state_of_this_process()->let_companion_go(); }

  Pulse pulse() const override {
    const State& state = *here_.load()->state;
    return {state.busy_since, state.last_end, state.late_failures};
  }

  bool readmit() override {
    std::shared_ptr<State> state = state_of_this_process();
    std::lock_guard guard(state->mutex);
    if (state->set_aside && state->current) return false;
    state->set_aside = false;
    return true;
  }

 private:
  // A holder, so that the first submit in a forked child can change it without a lock (which may be held by nobody).
  struct Here {
    std::shared_ptr<State> state;
  };

  static std::shared_ptr<Ticket> refused(Status why) {
    auto ticket = std::make_shared<CompanionTicket>(nullptr, nullptr);
    ticket->outcome_ = std::move(why);
    return ticket;
  }

  std::shared_ptr<State> state_of_this_process() {
    Here* here = here_.load(std::memory_order_acquire);
    while (!here->state->of_this_process()) {
      auto* fresh = new Here{std::make_shared<State>(here->state->name, here->state->deadline)};
      fresh->state->set_aside = here->state->set_aside.load();
      // The parent's state is leaked: its mutex may be locked, its condition has waiters that do not exist.
      if (here_.compare_exchange_strong(here, fresh)) return fresh->state;
      delete fresh;
    }
    return here->state;
  }

  std::atomic<Here*> here_;
};

class DoneTicket final : public Ticket {
 public:
  explicit DoneTicket(Status outcome) : outcome_(std::move(outcome)) {}
  Status wait() override { return outcome_; }

 private:
  Status outcome_;
};

class InlineLane final : public Lane {
 public:
  std::shared_ptr<Ticket> submit(std::function<Status()> call) override {
    if (set_aside_) return std::make_shared<DoneTicket>(hung("a target"));
    Status outcome = call();
    if (outcome.kind() == Kind::timed_out && outcome.sys_errno() == 0) set_aside_ = true;
    return std::make_shared<DoneTicket>(std::move(outcome));
  }
  bool set_aside() const override { return set_aside_; }
  bool readmit() override {
    set_aside_ = false;
    return true;
  }
  void let_go(std::shared_ptr<const void> thing) override { thing.reset(); }

 private:
  std::atomic<bool> set_aside_{false};
};

}  // namespace

void watch_forks() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, [] {
      ++fork_generation;
      hung_calls = 0;     // which are the parent's
      started = nullptr;  // its mutex may be locked
      forget_companions_of_parent();
    });
  });
}

std::shared_ptr<Lane> make_companion_lane(std::string name, std::chrono::milliseconds deadline) {
  watch_forks();
  return std::make_shared<CompanionLane>(std::move(name), deadline);
}

void end_idle_companions() {
  Started* const all = started;
  if (!all) return;  // no companion was ever started here, as in most programs
  std::unique_lock guard(all->mutex);
  const auto states = all->states;
  guard.unlock();  // who starts a companion holds its own state's mutex and waits for this one
  int busy = 0;
  for (const auto& one : states)
    if (const auto state = one.lock()) busy += !state->let_companion_go();
  // Milliseconds on a busy machine. Nobody is made to wait for long where something else is wrong.
  const auto late = Clock::now() + std::chrono::seconds(1);
  const timespec moment{0, 50'000};
  while (living_companions() > busy && Clock::now() < late) (void)syscall(SYS_nanosleep, &moment, nullptr);
}

std::shared_ptr<Lane> make_inline_lane() { return std::make_shared<InlineLane>(); }

}  // namespace holdfast::target
