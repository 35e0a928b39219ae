// Turns: of the threads that stand for ranks, one runs at a time, and a seed says whose turn is next. Every call on storage
// and every collective step is a point where the turn may pass, so a run with several ranks replays from its seed.
#pragma once
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "exchange/exchange.hpp"

namespace holdfast::sim {

class Schedule {
 public:
  Schedule(int ranks, uint64_t seed) : states_(ranks, State::ready), random_(seed), turn_(int(random_() % uint64_t(ranks))) {}

  // A rank's thread calls these at its begin and end.
  void enter(int rank) {
    mine() = Mine{this, rank};
    std::unique_lock guard(mutex_);
    wait_for_turn(guard, rank);
  }
  void leave() {
    std::unique_lock guard(mutex_);
    states_[mine().rank] = State::ended;
    pass_on(-1);
    mine() = Mine{nullptr, 0};
  }

  // Perhaps another rank goes on here; certainly, where one can and this one only `waits`. Outside a schedule nothing happens.
  static void yield(bool waits = false) {
    if (mine().schedule) mine().schedule->let_another(mine().rank, waits);
  }
  static int current_rank() { return mine().schedule ? mine().rank : 0; }
  static bool in_one() { return mine().schedule != nullptr; }

  // A collective step: all ranks are in `step` at once, then they take turns again.
  void meet(int rank, const std::function<void()>& step) {
    std::unique_lock guard(mutex_);
    states_[rank] = State::meeting;
    const uint64_t round = round_;
    if (++arrived_ == states_.size()) {
      ++round_;
      changed_.notify_all();
    } else {
      pass_on(rank);
      changed_.wait(guard, [&] { return round_ != round; });
    }
    guard.unlock();
    step();
    guard.lock();
    if (++returned_ == states_.size()) {
      arrived_ = returned_ = 0;
      for (State& state : states_) state = State::ready;
      pass_on(-1);
    }
    wait_for_turn(guard, rank);
  }

  uint64_t trace() {  // differs where the order of turns did
    std::lock_guard guard(mutex_);
    return trace_;
  }

 private:
  enum class State : uint8_t { ready, meeting, ended };
  struct Mine {
    Schedule* schedule;
    int rank;
  };

  void let_another(int rank, bool waits) {
    std::unique_lock guard(mutex_);
    pass_on(waits ? rank : -1);
    wait_for_turn(guard, rank);
  }

  // Whose turn is next: a ready rank, not `except` unless it is the only one.
  void pass_on(int except) {
    std::vector<int> ready;
    for (int rank = 0; rank < int(states_.size()); ++rank)
      if (states_[rank] == State::ready && rank != except) ready.push_back(rank);
    if (ready.empty() && except >= 0 && states_[except] == State::ready) ready.push_back(except);
    if (ready.empty() && arrived_ != 0) {
      std::fprintf(stderr, "simulator: a rank has ended while others wait for it in a collective step\n");
      std::abort();
    }
    if (ready.empty()) return;
    turn_ = ready[random_() % ready.size()];
    trace_ = (trace_ ^ uint64_t(turn_ + 1)) * 1099511628211u;
    changed_.notify_all();
  }
  void wait_for_turn(std::unique_lock<std::mutex>& guard, int rank) {
    changed_.wait(guard, [&] { return turn_ == rank && states_[rank] == State::ready; });
  }

  static Mine& mine() {
    static thread_local Mine of_this_thread{nullptr, 0};
    return of_this_thread;
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<State> states_;
  std::mt19937_64 random_;
  int turn_;
  size_t arrived_ = 0, returned_ = 0;
  uint64_t round_ = 0, trace_ = 14695981039346656037u;
};

// An exchange over threads whose ranks take turns.
class ScheduledExchange final : public exchange::Exchange {
 public:
  ScheduledExchange(std::unique_ptr<Exchange> inner, Schedule& schedule) : inner_(std::move(inner)), schedule_(schedule) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void barrier() override {
    schedule_.meet(rank(), [&] { inner_->barrier(); });
  }
  std::vector<Bytes> all_gather(ByteView mine) override {
    return met<std::vector<Bytes>>([&] { return inner_->all_gather(mine); });
  }
  std::vector<Bytes> all_to_all(std::vector<Bytes> to) override {
    return met<std::vector<Bytes>>([&] { return inner_->all_to_all(std::move(to)); });
  }
  std::vector<int64_t> all_max(std::vector<int64_t> mine) override {
    return met<std::vector<int64_t>>([&] { return inner_->all_max(std::move(mine)); });
  }

 private:
  template <class Answer, class Call>
  Answer met(Call call) {
    Answer answer;
    schedule_.meet(rank(), [&] { answer = call(); });
    return answer;
  }
  std::unique_ptr<Exchange> inner_;
  Schedule& schedule_;
};

}  // namespace holdfast::sim
