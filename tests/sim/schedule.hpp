// Turns: the processes of a simulated world run one at a time, and a seed says whose turn is next. Every call on storage and every
// collective step is a point where the turn may pass, so a run replays from its seed. Processes come and go while others run; those of
// one group meet each other only. A process may be killed at any such point.
//
// A process is a fiber: a stack of its own in the one thread of the schedule, so that a turn costs no system's scheduling. A process may have
// threads: fibers that are killed with it and go by its number.
#pragma once
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "exchange/exchange.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

// swapcontext asks the kernel for the signal mask twice a turn, which costs more than all else of it; no process here changes it.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HOLDFAST_SIM_OWN_SWITCH 1
#else
#define HOLDFAST_SIM_OWN_SWITCH 0
#endif

namespace holdfast::sim {

#if HOLDFAST_SIM_OWN_SWITCH
// What a function must leave as it found it goes onto the stack that is left; the same comes from the one that goes on. How floating point
// numbers are rounded is the same everywhere here.
__attribute__((naked, noinline)) inline void switch_stacks(void** /*left*/, void* /*goes_on*/) {
  asm("pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
      "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
      "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n"
      "ret");
}
#endif

constexpr pthread_key_t kept_keys = 24;

// The keys that held something before the program began, a bit each: they are the runtime's (AddressSanitizer knows its thread by one) and
// stay with the thread, whoever runs on it.
inline const uint32_t keys_of_the_runtime = [] {
  uint32_t keys = 0;
  for (pthread_key_t key = 0; key < kept_keys; ++key)
    if (pthread_getspecific(key)) keys |= uint32_t{1} << key;
  return keys;
}();

// A stack with what the thread remembers for whoever runs on it. Stacks are used again: making one costs more than a short process.
class Fiber {
 public:
  static constexpr size_t stack_bytes = 1 << 20;

  Fiber() {
    stack_ = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack_ == MAP_FAILED) std::abort();
    mprotect(stack_, 4096, PROT_NONE);  // a process that needs more must not write into another's
#if defined(__SANITIZE_THREAD__)
    tsan_ = __tsan_create_fiber(0);
#endif
  }
  Fiber(const Fiber&) = delete;

  // The thread's own stack, from which the schedule is run.
  struct OfThread {};
  explicit Fiber(OfThread) {
#if defined(__SANITIZE_THREAD__)
    tsan_ = __tsan_get_current_fiber();
#endif
  }

  void prepare(void (*entry)()) {
    forget_frames();  // who ran here before has ended without returning from its first ones
#if defined(__SANITIZE_ADDRESS__)
    fake_stack_ = nullptr;
#endif
#if HOLDFAST_SIM_OWN_SWITCH
    // As if it had been left by switch_stacks: six registers, where it goes on, and nowhere to return to.
    auto* top = reinterpret_cast<void**>(static_cast<char*>(stack_) + stack_bytes);
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(entry);
    for (int registers = 0; registers < 6; ++registers) *--top = nullptr;
    stack_pointer_ = top;
#else
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack_;
    context_.uc_stack.ss_size = stack_bytes;
    context_.uc_link = nullptr;
    makecontext(&context_, entry, 0);
#endif
  }
  // AddressSanitizer is to expect nothing of what lies on this stack: frames are left without being returned from.
  void forget_frames() {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(static_cast<char*>(stack_) + 4096, stack_bytes - 4096);
#endif
  }
  void switch_to(Fiber& other) {
    // What pthread keys hold is kept by thread: here each process is to have its own, as it would in a thread.
    for (pthread_key_t key = 0; key < kept_keys; ++key) {
      if (keys_of_the_runtime >> key & 1) continue;
      void* const theirs = other.kept_[key];
      kept_[key] = pthread_getspecific(key);
      if (theirs != kept_[key]) (void)pthread_setspecific(key, theirs);
    }
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&fake_stack_, other.stack_ ? other.stack_ : thread_bottom(), other.stack_ ? stack_bytes : thread_bytes());
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(other.tsan_, 0);
#endif
#if HOLDFAST_SIM_OWN_SWITCH
    switch_stacks(&stack_pointer_, other.stack_pointer_);
#else
    swapcontext(&context_, &other.context_);
#endif
    arrived();
  }
  // To be called where a fiber begins to run.
  void arrived() {
#if defined(__SANITIZE_ADDRESS__)
    const void* bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(fake_stack_, &bottom, &bytes);
    if (!thread_bottom()) thread_bottom() = bottom, thread_bytes() = bytes;
#endif
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  static const void*& thread_bottom() {
    static const void* bottom = nullptr;
    return bottom;
  }
  static size_t& thread_bytes() {
    static size_t bytes = 0;
    return bytes;
  }
  void* fake_stack_ = nullptr;
#endif
#if defined(__SANITIZE_THREAD__)
  void* tsan_ = nullptr;
#endif
#if HOLDFAST_SIM_OWN_SWITCH
  void* stack_pointer_ = nullptr;
#else
  ucontext_t context_{};
#endif
  void* stack_ = nullptr;
  std::array<void*, kept_keys> kept_{};
};

class Schedule {
 public:
  // `stay` of 8: how often a process goes on although the turn could pass.
  explicit Schedule(uint64_t seed, unsigned stay = 0) : random_(seed), stay_(stay) {}

  // Another process, from now on. Its number.
  int add(std::function<void()> body) { return add_fiber(std::move(body), int(processes_.size())); }
  // Another thread of the running process, which has to join_threads() before it ends or meets others of its group.
  void add_thread(std::function<void()> body) { (void)add_fiber(std::move(body), me().of); }
  void join_threads() {
    while (std::any_of(living_.begin(), living_.end(), [this](int fiber) { return fiber != current_ && processes_[fiber]->of == me().of; }))
      let_threads_on();
  }
  // For a thread that waits for another one of its process: also where that is dead. False outside a schedule.
  static bool let_threads_on() {
    if (!running()) return false;
    if (dead()) running()->to_a_sibling();
    else yield(true);
    return true;
  }
  // Until all have ended.
  void run() {
    Schedule* const before = std::exchange(running(), this);
    if (counted) counted_before_ = counted();
    while (!living_.empty()) {
      current_ = pick_or_be_stuck();
      home_.switch_to(*processes_[current_]->fiber);
      std::erase(living_, current_);
      give_back(*processes_[std::exchange(current_, -1)]);
    }
    running() = before;
  }
  // Called where nobody can go on, or ranks do different things; has to kill those that it is about. Without it the program ends.
  std::function<void(const char* why)> when_stuck;

  // Perhaps another process goes on here; certainly, where one can and this one only `waits`. Outside a schedule nothing happens.
  static void yield(bool waits = false) {
    if (running()) running()->let_another(waits);
  }
  static int current_rank() {
    if (!running()) return 0;
    return running()->current_ < 0 ? -1 : running()->me().of;
  }
  static bool in_one() { return running() != nullptr; }

  // --- death
  // A process that is dead runs on alone and at once, and nobody notices: storage no longer answers it, and what it would wait for with
  // its group ends it with this.
  struct Killed {};
  static bool dead() { return running() && running()->current_ >= 0 && running()->mine().dead; }
  // Counts a call on storage of the running process; false where it is dead.
  static bool count_call() {
    if (!running()) return true;
    Process& mine = running()->mine();
    if (mine.calls_left > 0 && --mine.calls_left == 0) running()->kill(running()->me().of);
    return !mine.dead;
  }
  // It dies at its n-th call on storage from now on.
  void kill_after(int process, int64_t calls) { processes_[process]->calls_left = calls; }
  void kill(int process) {
    Process& dying = *processes_[process];
    if (dying.dead || dying.state == State::ended) return;
    dying.dead = true;
    for (auto& release : std::exchange(dying.at_death, {})) release();
    if (dying.state == State::meeting) dying.state = State::ready;
    for (int other : dying.group)  // who waits for it waits until somebody kills it, too
      if (processes_[other]->state == State::meeting) kill(other);
  }
  // What the system takes back from a process that dies: its locks.
  static void at_death(std::function<void()> release) {
    if (running()) running()->mine().at_death.push_back(std::move(release));
  }
  // It does not run for so many turns of others: stopped by a signal, or with its node.
  void stop(int process, int turns) { processes_[process]->stopped = turns; }
  bool is_stopped(int process) const { return processes_[process]->stopped > 0; }
  bool is_dead(int process) const { return processes_[process]->dead; }
  bool has_ended(int process) const { return processes_[process]->state == State::ended; }

  // --- groups
  // What the processes of a group bring to one collective step.
  struct Step {
    int kind = 0;
    size_t arrived = 0;
    std::vector<std::vector<Bytes>> brought;  // by rank
  };
  struct Group {
    explicit Group(int ranks) : members(ranks, -1) { begin(); }
    void begin() {
      step = std::make_shared<Step>();
      step->brought.resize(members.size());
    }
    std::vector<int> members;  // by rank: process
    std::shared_ptr<Step> step;
  };
  void join(Group& group, int rank, int process) {
    group.members[rank] = process;
    processes_[process]->group = {};
    for (int member : group.members)
      if (member >= 0)
        for (int other : group.members)
          if (other >= 0 && other != member) processes_[member]->group.push_back(other);
  }
  // A collective step: comes back with what all have brought when all of the group are in it.
  std::shared_ptr<const Step> meet(Group& group, int rank, int kind, std::vector<Bytes> mine) {
    if (!me().dead && any_dead(group)) kill(current_);
    if (me().dead) end_killed();
    auto step = group.step;
    if (step->arrived == 0) step->kind = kind;
    if (step->kind != kind) {
      stuck("ranks called different collective steps of one group");
      end_killed();
    }
    step->brought[rank] = std::move(mine);
    if (++step->arrived == group.members.size()) {
      group.begin();
      for (int member : group.members) processes_[member]->state = State::ready;
      let_another(false);
    } else {
      me().state = State::meeting;
      pass_on();
    }
    if (me().dead) end_killed();
    return step;
  }

  uint64_t trace() const { return trace_; }  // differs where the order of turns did

  // --- what a process holds of something that `counted` counts for all of them: what it has come to while that one ran
  uint64_t (*counted)() = nullptr;
  std::function<void(int process, int64_t holds)> when_counted;  // at each point where the turn may pass

 private:
  enum class State : uint8_t { ready, meeting, ended };
  struct Process {
    std::function<void()> body;
    std::unique_ptr<Fiber> fiber;
    State state = State::ready;
    int of = -1;  // whose thread it is, by number: a process is its own first one; what follows but `patience` is the process's
    bool dead = false;
    int patience = 0;        // turns that it leaves to others, having found something busy
    int stopped = 0;         // turns until it goes on
    int64_t calls_left = 0;  // until it is killed; 0: lives
    int64_t holds = 0;       // of what is counted
    std::vector<int> group;  // the others
    std::vector<std::function<void()>> at_death;
  };
  static constexpr int turns_of_patience = 6;

  Process& me() { return *processes_[current_]; }
  Process& mine() { return *processes_[me().of]; }

  int add_fiber(std::function<void()> body, int of) {
    auto process = std::make_unique<Process>();
    process->body = std::move(body);
    process->of = of;
    process->fiber = take_fiber();
    process->fiber->prepare(&Schedule::entry);
    processes_.push_back(std::move(process));
    living_.push_back(int(processes_.size()) - 1);
    return int(processes_.size()) - 1;
  }
  // To the next thread of the running process, round and round.
  void to_a_sibling() {
    auto at = std::find(living_.begin(), living_.end(), current_);
    do
      if (++at == living_.end()) at = living_.begin();
    while (processes_[*at]->of != me().of);
    switch_to(*at);
  }
  void count() {
    if (!counted) return;
    const uint64_t now = counted();
    mine().holds += int64_t(now - std::exchange(counted_before_, now));
    when_counted(me().of, mine().holds);
  }
  void switch_to(int next) {
    if (next == current_) return;
    count();
    Fiber& from = *me().fiber;
    current_ = next;
    from.switch_to(*processes_[next]->fiber);
  }
  bool any_dead(const Group& group) const {
    for (int member : group.members)
      if (processes_[member]->dead) return true;
    return false;
  }

  void let_another(bool waits) {
    count();
    if (mine().dead) return;
    if (waits) me().patience = turns_of_patience;
    else if (stay_ && random_() % 8 < stay_) return;
    pass_on();
  }
  // The turn goes to a process that can use it, perhaps this one again.
  void pass_on() { switch_to(pick_or_be_stuck()); }
  // Whose turn is next: one that is ready, and rather not one that waits for others. -1: nobody.
  int pick() {
    ready_.clear();
    waiting_.clear();
    stopped_.clear();
    for (int i : living_) {
      Process& process = *processes_[i];
      if (process.state != State::ready) continue;
      if (process.stopped > 0 && !processes_[process.of]->dead) {
        --process.stopped;
        stopped_.push_back(i);
        continue;
      }
      (process.patience > 0 && !processes_[process.of]->dead ? waiting_ : ready_).push_back(i);
      if (process.patience > 0) --process.patience;
    }
    const std::vector<int>& among = !ready_.empty() ? ready_ : !waiting_.empty() ? waiting_ : stopped_;
    if (among.empty()) return -1;
    const int next = among[random_() % among.size()];
    trace_ = (trace_ ^ uint64_t(next + 1)) * 1099511628211u;
    return next;
  }

  static void entry() {
    Schedule& schedule = *running();
    Process& process = schedule.me();
    process.fiber->arrived();
    try {
      process.body();
    } catch (const Killed&) {
    }
    process.state = State::ended;
    process.at_death.clear();
    schedule.count();
    process.fiber->switch_to(schedule.home_);
    std::abort();
  }
  [[noreturn]] void end_killed() {
    me().fiber->forget_frames();
    throw Killed();
  }
  int pick_or_be_stuck() {
    int next = pick();
    if (next < 0) {
      stuck("a process has ended while others wait for it in a collective step");
      next = pick();
    }
    if (next < 0) std::abort();
    return next;
  }
  void stuck(const char* why) {
    if (when_stuck) return when_stuck(why);
    std::fprintf(stderr, "simulator: %s\n", why);
    std::abort();
  }

  static std::vector<std::unique_ptr<Fiber>>& unused() {
    // Never destroyed: what their keys hold would be lost with them, for it is freed where a thread ends only.
    static auto* const fibers = new std::vector<std::unique_ptr<Fiber>>;
    return *fibers;
  }
  static std::unique_ptr<Fiber> take_fiber() {
    if (unused().empty()) return std::make_unique<Fiber>();
    auto fiber = std::move(unused().back());
    unused().pop_back();
    return fiber;
  }
  static void give_back(Process& process) {
    process.body = nullptr;
    unused().push_back(std::move(process.fiber));
  }
  static Schedule*& running() {
    static Schedule* of_this_program = nullptr;
    return of_this_program;
  }

  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<int> living_;  // those that have not ended, in the order of their numbers
  std::vector<int> ready_, waiting_, stopped_;
  Fiber home_{Fiber::OfThread{}};
  std::mt19937_64 random_;
  unsigned stay_;
  int current_ = -1;
  uint64_t counted_before_ = 0;
  uint64_t trace_ = 14695981039346656037u;
};

// The exchange of one group of processes.
class GroupExchange final : public exchange::Exchange {
 public:
  GroupExchange(Schedule& schedule, Schedule::Group& group, int rank) : schedule_(schedule), group_(group), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return int(group_.members.size()); }
  void barrier() override { (void)schedule_.meet(group_, rank_, 0, {}); }
  std::vector<Bytes> all_gather(ByteView mine) override {
    const auto step = schedule_.meet(group_, rank_, 1, {Bytes(mine.begin(), mine.end())});
    std::vector<Bytes> all;
    for (int i = 0; i < size(); ++i) all.push_back(step->brought[i][0]);
    return all;
  }
  std::vector<Bytes> all_to_all(std::vector<Bytes> to) override {
    to.resize(size());  // ranks past the end get nothing
    const auto step = schedule_.meet(group_, rank_, 2, std::move(to));
    std::vector<Bytes> from;
    for (int i = 0; i < size(); ++i) from.push_back(step->brought[i][rank_]);
    return from;
  }
  std::vector<int64_t> all_max(std::vector<int64_t> mine) override {
    const auto bytes = std::as_bytes(std::span(mine));
    const auto step = schedule_.meet(group_, rank_, 3, {Bytes(bytes.begin(), bytes.end())});
    std::vector<int64_t> most = mine;
    for (int i = 0; i < size(); ++i) {
      const Bytes& part = step->brought[i][0];
      for (size_t k = 0; k < std::min(most.size(), part.size() / sizeof(int64_t)); ++k) {
        int64_t value;
        std::memcpy(&value, part.data() + k * sizeof value, sizeof value);
        most[k] = std::max(most[k], value);
      }
    }
    return most;
  }

 private:
  Schedule& schedule_;
  Schedule::Group& group_;
  int rank_;
};

}  // namespace holdfast::sim
