#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "target/companion.hpp"
#include "target/lane.hpp"

namespace holdfast::target::lane_tests {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A call that blocks until it is opened, however its ticket ends.
struct Gate {
  std::promise<void> promise;
  std::shared_future<void> future = promise.get_future().share();
  std::function<Status()> call() {
    return [open = future] {
      open.wait();
      return Status();
    };
  }
  void open() { promise.set_value(); }
};

void eventually(const std::function<bool()>& fact) {
  for (int i = 0; i < 2000 && !fact(); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(fact());
}

TEST(CompanionLane, calls_run_in_order_one_at_a_time_and_bring_their_status) {
  auto lane = make_companion_lane("t", 10s);
  auto order = std::make_shared<std::vector<int>>();
  std::vector<std::shared_ptr<Ticket>> tickets;
  for (int i = 0; i < 1000; ++i) {
    tickets.push_back(lane->submit([order, i] {
      order->push_back(i);
      return i % 2 ? Status(Kind::io, "odd") : Status();
    }));
  }
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(tickets[i]->wait().ok(), i % 2 == 0);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ((*order)[i], i);
}

TEST(CompanionLane, lanes_run_side_by_side) {
  auto first = make_companion_lane("first", 10s);
  auto second = make_companion_lane("second", 10s);
  Gate gate;
  auto blocked = first->submit(gate.call());
  EXPECT_TRUE(second->run([] { return Status(); }).ok());
  gate.open();
  EXPECT_TRUE(blocked->wait().ok());
}

TEST(CompanionLane, that_rests_has_no_companion_until_its_next_call) {
  auto lane = make_companion_lane("t", 10s);
  Gate gate;
  auto blocked = lane->submit(gate.call());
  const int busy = living_companions();
  lane->rest();  // when that call has ended
  gate.open();
  EXPECT_TRUE(blocked->wait().ok());
  eventually([&] { return living_companions() < busy || busy == 0; });  // under the sanitizers there are none
  EXPECT_TRUE(lane->run([] { return Status(); }).ok());
}

TEST(CompanionLane, a_hung_call_costs_its_deadline_once_and_sets_the_lane_aside) {
  auto lane = make_companion_lane("t", 100ms);
  Gate gate;
  std::atomic<int> ran{0};
  auto hung = lane->submit(gate.call());
  auto behind = lane->submit([&] { return ++ran, Status(); });
  auto begin = Clock::now();
  EXPECT_EQ(hung->wait().kind(), Kind::timed_out);
  EXPECT_EQ(behind->wait().kind(), Kind::timed_out);
  EXPECT_GE(Clock::now() - begin, 100ms);
  EXPECT_LT(Clock::now() - begin, 5s);
  EXPECT_TRUE(lane->set_aside());
  begin = Clock::now();
  EXPECT_EQ(lane->run([&] { return ++ran, Status(); }).kind(), Kind::timed_out);
  EXPECT_LT(Clock::now() - begin, 90ms);
  EXPECT_FALSE(lane->readmit());
  EXPECT_TRUE(lane->set_aside());

  gate.open();
  eventually([&] { return lane->readmit(); });
  EXPECT_FALSE(lane->set_aside());
  EXPECT_TRUE(lane->run([] { return Status(); }).ok());
  EXPECT_EQ(hung->wait().kind(), Kind::timed_out) << "a verdict stands";
  EXPECT_EQ(ran, 0) << "a call that was answered timed_out without having begun must never run";
}

TEST(CompanionLane, waiting_in_the_queue_does_not_count_against_the_deadline) {
  auto lane = make_companion_lane("t", 300ms);
  std::vector<std::shared_ptr<Ticket>> tickets;
  for (int i = 0; i < 8; ++i) {
    tickets.push_back(lane->submit([] {
      std::this_thread::sleep_for(80ms);
      return Status();
    }));
  }
  EXPECT_TRUE(tickets.back()->wait().ok());
  EXPECT_FALSE(lane->set_aside());
}

TEST(CompanionLane, a_hung_call_delays_neither_destructor_nor_exit) {
  auto held = std::make_shared<Gate>();
  {
    auto lane = make_companion_lane("t", 20ms);
    EXPECT_EQ(lane->run([held] { return held->call()(); }).kind(), Kind::timed_out);
  }
  EXPECT_GT(held.use_count(), 1) << "what a hung call touches lives as long as it";
  held->open();
  eventually([&] { return held.use_count() == 1; });
}

TEST(CompanionLane, calls_submitted_before_the_lane_goes_are_still_done) {
  std::atomic<int> ran{0};
  std::vector<std::shared_ptr<Ticket>> tickets;
  {
    auto lane = make_companion_lane("t", 10s);
    for (int i = 0; i < 10; ++i) tickets.push_back(lane->submit([&] { return ++ran, Status(); }));
  }
  for (auto& ticket : tickets) EXPECT_TRUE(ticket->wait().ok());
  EXPECT_EQ(ran, 10);
}

TEST(CompanionLane, buffers_of_a_call_are_free_once_its_ticket_has_ended) {
  auto lane = make_companion_lane("t", 10s);
  for (int i = 0; i < 200; ++i) {
    auto buffer = std::make_shared<int>(i);
    EXPECT_TRUE(lane->run([buffer] { return Status(); }).ok());
    EXPECT_EQ(buffer.use_count(), 1);
  }
}

// Blocks in its destructor, as closing a file on a hung server does.
struct SlowToClose {
  std::shared_future<void> open;
  std::shared_ptr<std::atomic<int>> closed;
  ~SlowToClose() {
    open.wait();
    ++*closed;
  }
};

TEST(CompanionLane, what_is_let_go_is_destroyed_in_the_lane_before_the_caller_goes_on) {
  auto lane = make_companion_lane("t", 5s);
  std::thread::id destroyed_in;
  lane->let_go(std::shared_ptr<int>(new int, [&](int* thing) {
    delete thing;
    destroyed_in = std::this_thread::get_id();
  }));
  EXPECT_NE(destroyed_in, std::thread::id());
  EXPECT_NE(destroyed_in, std::this_thread::get_id());
}

TEST(CompanionLane, letting_go_of_what_blocks_costs_the_deadline_once_and_still_happens) {
  auto lane = make_companion_lane("t", 60ms);
  Gate gate;
  auto closed = std::make_shared<std::atomic<int>>(0);
  auto make = [&] { return std::shared_ptr<SlowToClose>(new SlowToClose{gate.future, closed}); };
  auto begin = Clock::now();
  lane->let_go(make());
  EXPECT_TRUE(lane->set_aside());
  EXPECT_LT(Clock::now() - begin, 5s);
  begin = Clock::now();
  lane->let_go(make());
  EXPECT_LT(Clock::now() - begin, 50ms);
  EXPECT_FALSE(lane->readmit());
  EXPECT_EQ(*closed, 0);
  lane.reset();
  gate.open();
  eventually([&] { return *closed == 2; });
}

TEST(CompanionLane, what_is_let_go_behind_a_hung_call_is_destroyed_when_that_has_ended) {
  auto lane = make_companion_lane("t", 60ms);
  Gate gate;
  auto hung = lane->submit(gate.call());
  auto thing = std::make_shared<int>(1);
  std::weak_ptr<int> watched = thing;
  lane->let_go(std::move(thing));
  EXPECT_EQ(hung->wait().kind(), Kind::timed_out);
  EXPECT_FALSE(watched.expired());
  gate.open();
  eventually([&] { return watched.expired() && lane->readmit(); });
}

TEST(CompanionLane, the_programs_signals_never_arrive_in_a_lane) {
  auto lane = make_companion_lane("t", 10s);
  EXPECT_TRUE(lane->run([] {
                    sigset_t mask;
                    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
                    bool blocked = sigismember(&mask, SIGINT) && sigismember(&mask, SIGUSR1) && sigismember(&mask, SIGCHLD);
                    return blocked && !sigismember(&mask, SIGSEGV) ? Status() : Status(Kind::internal, "mask");
                  })
                  .ok());
  sigset_t mine;
  pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_FALSE(sigismember(&mine, SIGUSR1));
}

#ifndef __SANITIZE_THREAD__  // its runtime does not follow a child of a process with threads
int in_child(const std::function<bool()>& body) {
  pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

TEST(CompanionLane, a_forked_child_gets_a_companion_of_its_own) {
  auto lane = make_companion_lane("t", 5s);
  EXPECT_TRUE(lane->run([] { return Status(); }).ok());
  EXPECT_EQ(in_child([&] {
              int answer = 0;  // written by another process, were it not the child's own companion
              bool ok = lane->run([&] { return answer = 42, Status(); }).ok() && answer == 42;
              lane.reset();
              return ok;
            }),
            0);
  EXPECT_TRUE(lane->run([] { return Status(); }).ok());
}

TEST(CompanionLane, a_fork_in_the_middle_of_calls_leaves_parent_and_child_working) {
  auto lane = make_companion_lane("t", 5s);
  Gate gate;
  auto blocked = lane->submit(gate.call());
  auto queued = lane->submit([] { return Status(); });
  EXPECT_EQ(in_child([&] {
              bool forgotten = blocked->wait().kind() == Kind::timed_out && queued->wait().kind() == Kind::timed_out;
              blocked.reset();
              queued.reset();
              bool ok = forgotten && lane->run([] { return Status(); }).ok();
              lane.reset();
              return ok;
            }),
            0);
  gate.open();
  EXPECT_TRUE(blocked->wait().ok());
  EXPECT_TRUE(queued->wait().ok());
}

TEST(CompanionLane, a_child_that_never_uses_the_lane_ends_without_it) {
  auto lane = make_companion_lane("t", 5s);
  Gate gate;
  auto blocked = lane->submit(gate.call());
  EXPECT_EQ(in_child([&] { return lane.reset(), true; }), 0);
  gate.open();
}

TEST(CompanionLane, a_program_that_waits_for_its_children_does_not_meet_the_companion) {
  auto lane = make_companion_lane("t", 5s);
  EXPECT_TRUE(lane->run([] { return Status(); }).ok());
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  EXPECT_EQ(in_child([] { return true; }), 0) << "its own children it does";
}

TEST(CompanionLane, what_crashes_in_a_lane_ends_the_process_as_it_would_in_a_thread) {
  const int status = in_child([] {
    auto lane = make_companion_lane("t", 10s);
    (void)lane->run([] { return raise(SIGTRAP), Status(); });
    return true;
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP) << status;
}

#ifndef __SANITIZE_ADDRESS__  // under which the companion is a thread
TEST(CompanionLane, a_companion_is_no_thread_and_ends_with_its_process) {
  int pids[2];
  ASSERT_EQ(pipe(pids), 0);
  EXPECT_EQ(in_child([&] {
              auto lane = make_companion_lane("t", 100ms);
              auto gate = std::make_shared<Gate>();  // never opened
              auto busy = std::make_shared<std::atomic<pid_t>>(0);
              auto hung = lane->submit([=] { return *busy = getpid(), gate->call()(); });
              bool ok = hung->wait().kind() == Kind::timed_out && *busy != getpid();
              pid_t pid = *busy;
              return ok && write(pids[1], &pid, sizeof pid) == sizeof pid;
            }),
            0);
  pid_t companion = 0;
  ASSERT_EQ(read(pids[0], &companion, sizeof companion), ssize_t(sizeof companion));
  ASSERT_GT(companion, 1);
  eventually([&] { return kill(companion, 0) == -1 && errno == ESRCH; });
  close(pids[0]);
  close(pids[1]);
}
#endif
#endif

TEST(InlineLane, runs_each_call_at_once_in_the_caller) {
  auto lane = make_inline_lane();
  std::thread::id ran_in;
  auto ticket = lane->submit([&] { return ran_in = std::this_thread::get_id(), Status(Kind::io, "x"); });
  EXPECT_EQ(ran_in, std::this_thread::get_id());
  EXPECT_EQ(ticket->wait().kind(), Kind::io);
}

TEST(InlineLane, a_call_that_says_it_hung_sets_the_lane_aside_until_readmitted) {
  auto lane = make_inline_lane();
  EXPECT_EQ(lane->run([] { return Status(Kind::timed_out, "hung"); }).kind(), Kind::timed_out);
  EXPECT_TRUE(lane->set_aside());
  bool ran = false;
  EXPECT_EQ(lane->run([&] { return ran = true, Status(); }).kind(), Kind::timed_out);
  EXPECT_FALSE(ran);
  EXPECT_TRUE(lane->readmit());
  EXPECT_TRUE(lane->run([&] { return ran = true, Status(); }).ok());
  EXPECT_TRUE(ran);
}

TEST(InlineLane, a_systems_ETIMEDOUT_is_an_error_and_no_hang) {
  auto lane = make_inline_lane();
  EXPECT_FALSE(lane->run([] { return Status::from_errno(ETIMEDOUT, "server"); }).ok());
  EXPECT_FALSE(lane->set_aside());
}

}  // namespace
}  // namespace holdfast::target::lane_tests
