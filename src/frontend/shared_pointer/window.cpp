#include "frontend/shared_pointer/window.hpp"

namespace holdfast::frontend {

namespace {

constexpr MPI_Aint kSlotBytes = 64;  // a cache line, for neighbours' sake

class Alone : public SharedPointer {
 public:
  int64_t fetch_add(int64_t etypes) override { return __atomic_fetch_add(&value_, etypes, __ATOMIC_SEQ_CST); }
  int64_t load() override { return __atomic_load_n(&value_, __ATOMIC_SEQ_CST); }
  void store(int64_t etypes) override { __atomic_store_n(&value_, etypes, __ATOMIC_SEQ_CST); }

 private:
  int64_t value_ = 0;
};

class SharedMemory : public SharedPointer {
 public:
  explicit SharedMemory(MPI_Comm comm) {
    int rank = 0, unit = 0;
    void* mine = nullptr;
    MPI_Aint bytes = 0;
    real.Comm_rank(comm, &rank);
    real.Win_allocate_shared(rank == 0 ? kSlotBytes : 0, 1, MPI_INFO_NULL, comm, &mine, &window_);
    real.Win_shared_query(window_, 0, &bytes, &unit, &slot_);
    if (rank == 0) store(0);
    real.Barrier(comm);
  }
  ~SharedMemory() override { real.Win_free(&window_); }
  int64_t fetch_add(int64_t etypes) override { return __atomic_fetch_add(value(), etypes, __ATOMIC_SEQ_CST); }
  int64_t load() override { return __atomic_load_n(value(), __ATOMIC_SEQ_CST); }
  void store(int64_t etypes) override { __atomic_store_n(value(), etypes, __ATOMIC_SEQ_CST); }

 private:
  int64_t* value() { return static_cast<int64_t*>(slot_); }
  MPI_Win window_ = MPI_WIN_NULL;
  void* slot_ = nullptr;
};

class OneSided : public SharedPointer {
 public:
  explicit OneSided(MPI_Comm comm) {
    int rank = 0;
    void* mine = nullptr;
    real.Comm_rank(comm, &rank);
    real.Win_allocate(rank == 0 ? kSlotBytes : 0, 1, MPI_INFO_NULL, comm, &mine, &window_);
    if (rank == 0) {
      real.Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window_);
      *static_cast<int64_t*>(mine) = 0;
      real.Win_unlock(0, window_);
    }
    real.Barrier(comm);
  }
  ~OneSided() override { real.Win_free(&window_); }
  int64_t fetch_add(int64_t etypes) override { return operate(etypes, MPI_SUM); }
  int64_t load() override { return operate(0, MPI_NO_OP); }
  void store(int64_t etypes) override { operate(etypes, MPI_REPLACE); }

 private:
  int64_t operate(int64_t operand, MPI_Op operation) {
    int64_t before = 0;
    real.Win_lock(MPI_LOCK_SHARED, 0, 0, window_);
    real.Fetch_and_op(&operand, &before, MPI_INT64_T, 0, 0, operation, window_);
    real.Win_unlock(0, window_);
    return before;
  }
  MPI_Win window_ = MPI_WIN_NULL;
};

bool share_memory(MPI_Comm comm) {
  MPI_Comm neighbours = MPI_COMM_NULL;
  int all = 0, near = 0;
  real.Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &neighbours);
  real.Comm_size(comm, &all);
  real.Comm_size(neighbours, &near);
  real.Comm_free(&neighbours);
  return all == near;
}

}  // namespace

std::unique_ptr<SharedPointer> make_window_pointer(MPI_Comm comm) {
  int ranks = 0;
  real.Comm_size(comm, &ranks);
  if (ranks == 1) return std::make_unique<Alone>();
  if (share_memory(comm)) return std::make_unique<SharedMemory>(comm);
  return std::make_unique<OneSided>(comm);
}

}  // namespace holdfast::frontend
