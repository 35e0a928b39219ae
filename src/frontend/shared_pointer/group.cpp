#include "frontend/shared_pointer/group.hpp"

#include <time.h>

#include <algorithm>
#include <climits>
#include <mutex>

#include "base/config.hpp"

namespace holdfast::frontend {

namespace {

// In order of making, which is the same on all ranks of two groups: who makes a window waits for the others.
struct Groups {
  std::mutex mutex;
  std::vector<std::shared_ptr<PointerGroup>> all;
};
Groups& groups() {
  static auto* made = new Groups;  // programs may close files from exit handlers
  return *made;
}

bool same_processes(MPI_Comm a, MPI_Comm b) {
  int result = MPI_UNEQUAL;
  real.Comm_compare(a, b, &result);
  return result == MPI_IDENT || result == MPI_CONGRUENT;
}

bool share_memory(MPI_Comm comm) {
  MPI_Comm neighbours = MPI_COMM_NULL;
  int all = 0, near = 0;
  real.Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &neighbours);
  real.Comm_size(comm, &all);
  real.Comm_size(neighbours, &near);
  real.Comm_free(&neighbours);
  // All ranks must think the same.
  int mine = all == near && fake_nodes() == FakeNodes::no, together = 0;
  real.Allreduce(&mine, &together, 1, MPI_INT, MPI_MIN, comm);
  return together != 0;
}

// A rank that does not share memory with rank 0.
int some_far_rank(MPI_Comm comm, int rank) {
  MPI_Comm neighbours = MPI_COMM_NULL;
  int first = rank, far = INT_MAX;
  real.Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &neighbours);
  real.Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, neighbours);
  real.Comm_free(&neighbours);
  const bool is_far = fake_nodes() == FakeNodes::no ? first != 0 : rank != 0;
  const int mine = is_far ? rank : INT_MAX;
  real.Allreduce(&mine, &far, 1, MPI_INT, MPI_MIN, comm);
  return far;
}

int64_t now_us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
}

}  // namespace

FakeNodes fake_nodes() {
  static const FakeNodes wanted = [] {
    const std::string value = environment_variable("HOLDFAST_TEST_NODES");
    return value == "distinct" ? FakeNodes::distinct : value == "still" ? FakeNodes::still : FakeNodes::no;
  }();
  return wanted;
}

// ---------------------------------------------------------------- pointers in slots

// Memory that all ranks see: the processor's atomics need nobody's help.
class SlotPointer : public SharedPointer {
 public:
  SlotPointer(PointerGroup& group, int64_t number) : slot_(group.slot(number)) {}
  ~SlotPointer() override { __atomic_fetch_sub(&slot_.users, 1, __ATOMIC_SEQ_CST); }
  int64_t fetch_add(int64_t etypes) override { return __atomic_fetch_add(&slot_.position, etypes, __ATOMIC_SEQ_CST); }
  int64_t load() override { return __atomic_load_n(&slot_.position, __ATOMIC_SEQ_CST); }
  bool store(int64_t etypes) override {
    __atomic_store_n(&slot_.position, etypes, __ATOMIC_SEQ_CST);
    return true;
  }
  const char* algorithm() const override { return "window"; }
  int64_t* in_memory() override { return &slot_.position; }

 private:
  PointerSlot& slot_;
};

// One-sided operations on rank 0's memory, across nodes.
class OneSidedPointer : public SharedPointer {
 public:
  OneSidedPointer(PointerGroup& group, int64_t number)
      : group_(group),
        window_(group.row(number).window),
        number_(number),
        at_(group.row(number).shift + number % PointerGroup::kSlots * MPI_Aint{sizeof(PointerSlot)}) {}
  ~OneSidedPointer() override { group_.give_back(number_); }
  int64_t fetch_add(int64_t etypes) override { return operate(etypes, MPI_SUM); }
  int64_t load() override { return operate(0, MPI_NO_OP); }
  bool store(int64_t etypes) override { return operate(etypes, MPI_REPLACE), true; }
  const char* algorithm() const override { return "window"; }

 private:
  int64_t operate(int64_t operand, MPI_Op operation) {
    int64_t before = 0;
    std::lock_guard lock(mutex_);
    real.Fetch_and_op(&operand, &before, MPI_INT64_T, 0, at_, operation, window_);
    real.Win_flush(0, window_);
    return before;
  }
  PointerGroup& group_;
  std::mutex mutex_;
  MPI_Win window_;
  int64_t number_;
  MPI_Aint at_;
};

// ---------------------------------------------------------------- groups

std::shared_ptr<PointerGroup> PointerGroup::find(MPI_Comm comm) {
  std::lock_guard lock(groups().mutex);
  for (const auto& group : groups().all) {
    if (same_processes(comm, group->comm_)) return group;
  }
  return nullptr;
}

std::shared_ptr<PointerGroup> PointerGroup::make(MPI_Comm comm, bool keep) {
  auto group = std::make_shared<PointerGroup>(comm, keep);
  std::lock_guard lock(groups().mutex);
  groups().all.push_back(group);
  return group;
}

int PointerGroup::kept() {
  std::lock_guard lock(groups().mutex);
  return static_cast<int>(std::count_if(groups().all.begin(), groups().all.end(), [](const auto& g) { return g->keep_; }));
}

void PointerGroup::free_all() {
  std::vector<std::shared_ptr<PointerGroup>> all;
  {
    std::lock_guard lock(groups().mutex);
    all.swap(groups().all);
  }
  for (auto& group : all) group.reset();
}

void PointerGroup::file_closed() {
  if (files_.fetch_sub(1) != 1 || keep_) return;
  std::shared_ptr<PointerGroup> mine;  // goes outside of the lock: that is collective
  std::lock_guard lock(groups().mutex);
  auto& all = groups().all;
  auto found = std::find_if(all.begin(), all.end(), [&](const auto& g) { return g.get() == this; });
  if (found == all.end()) return;
  mine = std::move(*found);
  all.erase(found);
}

PointerGroup::PointerGroup(MPI_Comm comm, bool keep) : keep_(keep) {
  real.Comm_dup(comm, &comm_);
  real.Comm_set_errhandler(comm_, MPI_ERRORS_ARE_FATAL);
  real.Comm_rank(comm_, &rank_);
  real.Comm_size(comm_, &size_);
  shares_memory_ = share_memory(comm_);
  add_row();
  if (!shares_memory_ && rows_[0].window != MPI_WIN_NULL) makes_progress_ = try_progress();
}

// Rank 0 watches its memory and does not call MPI, while a far rank operates on it. The first round opens the way between
// the two, which may need both. An operation that is there when rank 0 begins to watch says nothing. Rank 0 may have come late
// out of the barrier and served it there. The next round gives it more time.
bool PointerGroup::try_progress() {
  constexpr int64_t kWatchUs = 50000;
  constexpr int kRounds = 6;
  enum Outcome : int { unknown, no, yes };
  const int far = some_far_rank(comm_, rank_);
  const int64_t* position = rank_ == 0 ? &slot(0).position : nullptr;
  int outcome = unknown;
  int64_t head_start_us = 2000;  // until rank 0 has surely left the barrier
  for (int round = 1; round <= kRounds && outcome == unknown; ++round, head_start_us *= 2) {
    real.Barrier(comm_);
    if (rank_ == far) {
      const timespec pause{head_start_us / 1000000, head_start_us % 1000000 * 1000};
      if (round > 1) nanosleep(&pause, nullptr);
      const int64_t one = 1;
      int64_t before = 0;
      real.Fetch_and_op(&one, &before, MPI_INT64_T, 0, rows_[0].shift, MPI_SUM, rows_[0].window);
      real.Win_flush(0, rows_[0].window);
    } else if (rank_ == 0 && round > 1 && __atomic_load_n(position, __ATOMIC_SEQ_CST) < round) {
      const int64_t start = now_us();
      for (outcome = no; outcome == no && now_us() - start < kWatchUs + head_start_us;)
        if (__atomic_load_n(position, __ATOMIC_SEQ_CST) == round) outcome = yes;
    }
    real.Barrier(comm_);
    real.Bcast(&outcome, 1, MPI_INT, 0, comm_);
  }
  return outcome == yes && fake_nodes() != FakeNodes::still;
}

PointerGroup::~PointerGroup() {
  for (Row& row : rows_) {
    if (row.window == MPI_WIN_NULL) continue;
    real.Win_unlock_all(row.window);
    real.Win_free(&row.window);
  }
  real.Comm_free(&comm_);
}

// All ranks must have got what they asked for; not every MPI has windows over every network.
bool PointerGroup::all_have(int code) {
  int mine = code == MPI_SUCCESS, all = 0;
  real.Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm_);
  return all != 0;
}

void PointerGroup::add_row() {
  Row row;
  void* mine = nullptr;
  // MPI promises less than a cache line's alignment; rank 0's decides, for what is shared is mapped in whole pages.
  const MPI_Aint bytes = rank_ == 0 ? (kSlots + 1) * MPI_Aint{sizeof(PointerSlot)} : 0;
  real.Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  if (shares_memory_) {
    MPI_Aint size = 0;
    int unit = 0;
    shares_memory_ = all_have(real.Win_allocate_shared(bytes, 1, MPI_INFO_NULL, comm_, &mine, &row.window));
    if (shares_memory_) real.Win_shared_query(row.window, 0, &size, &unit, &mine);
  }
  bool has_window = shares_memory_;
  if (!has_window) has_window = all_have(real.Win_allocate(bytes, 1, MPI_INFO_NULL, comm_, &mine, &row.window));
  real.Comm_set_errhandler(comm_, MPI_ERRORS_ARE_FATAL);
  if (has_window) {
    int64_t shift = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(mine) % sizeof(PointerSlot));
    real.Bcast(&shift, 1, MPI_INT64_T, 0, comm_);
    row.shift = shift;
    row.slots = reinterpret_cast<PointerSlot*>(static_cast<std::byte*>(mine) + shift);
    if (rank_ == 0) std::fill_n(row.slots, kSlots, PointerSlot{});
    real.Win_lock_all(MPI_MODE_NOCHECK, row.window);
    real.Win_sync(row.window);
  } else {  // only to count them
    row.window = MPI_WIN_NULL;
    row.unshared = std::make_unique<PointerSlot[]>(kSlots);
    row.slots = row.unshared.get();
  }
  real.Barrier(comm_);
  rows_.push_back(std::move(row));
}

int64_t PointerGroup::claim_slot() {
  const int64_t there = static_cast<int64_t>(rows_.size()) * kSlots;
  for (int64_t tried = 0; tried < there; ++tried) {
    const int64_t number = (next_ + tried) % there;
    int64_t nobody = 0;
    if (!__atomic_compare_exchange_n(&slot(number).users, &nobody, int64_t{size_}, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) continue;
    __atomic_store_n(&slot(number).position, int64_t{0}, __ATOMIC_SEQ_CST);
    next_ = number + 1;
    return number;
  }
  return there;  // the first of a row that everybody makes now
}

std::unique_ptr<SharedPointer> PointerGroup::attach(int64_t number) {
  if (number == static_cast<int64_t>(rows_.size()) * kSlots) {
    add_row();
    if (rank_ == 0) slot(number).users = size_;
    real.Barrier(comm_);
  }
  if (shares_memory_) return std::make_unique<SlotPointer>(*this, number);
  if (row(number).window == MPI_WIN_NULL) return nullptr;
  return std::make_unique<OneSidedPointer>(*this, number);
}

void PointerGroup::give_back(int64_t number) {
  if (shares_memory_ && number < static_cast<int64_t>(rows_.size()) * kSlots) __atomic_fetch_sub(&slot(number).users, 1, __ATOMIC_SEQ_CST);
  if (shares_memory_) return;
  real.Barrier(comm_);  // nobody uses it any more
  if (rank_ == 0 && number < static_cast<int64_t>(rows_.size()) * kSlots) slot(number).users = 0;
}

}  // namespace holdfast::frontend
