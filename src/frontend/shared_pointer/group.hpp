// The processes of a communicator, as far as shared pointers are concerned: a window with a row of slots, one for each
// open file. Made at the first open of such a group and used by all later ones, so that an open costs no window.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "frontend/shared_pointer/shared_pointer.hpp"
#include "real_mpi.h"

namespace holdfast::frontend {

// A cache line: files do not disturb each other.
struct alignas(64) PointerSlot {
  int64_t position;
  int64_t users;  // ranks that have not closed the file
  int64_t unused[6];
};

// What tests may ask for: HOLDFAST_TEST_NODES=distinct makes every rank a node of its own, =still one whose MPI makes no
// progress besides.
enum class FakeNodes { no, distinct, still };
FakeNodes fake_nodes();

class PointerGroup {
 public:
  // The group of `comm`, or null: not made yet. Local.
  static std::shared_ptr<PointerGroup> find(MPI_Comm comm);
  // Collective. `keep`: until MPI_Finalize; otherwise until its last file is closed.
  static std::shared_ptr<PointerGroup> make(MPI_Comm comm, bool keep);
  // How many small groups this process keeps; opens agree on whether there is room for another.
  static int kept();
  static constexpr int kKeptAtMost = 16;
  // At MPI_Finalize; collective over all.
  static void free_all();

  PointerGroup(MPI_Comm comm, bool keep);
  ~PointerGroup();  // collective
  PointerGroup(const PointerGroup&) = delete;

  // On rank 0: a slot that nobody uses, at zero and with all ranks as users. Its number is for all ranks: attach().
  int64_t claim_slot();
  // On every rank, with the number from rank 0, in the same order; collective only where the number is the first of a new
  // window. The pointer gives the slot back when it goes. Null where this MPI has no windows here.
  std::unique_ptr<SharedPointer> attach(int64_t slot);
  // On every rank, for a number that is not needed after all.
  void give_back(int64_t slot);

  // For collective calls about shared pointers, where the files of one process are used by one thread at a time.
  MPI_Comm comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  bool shares_memory() const { return shares_memory_; }
  // Across nodes: whether rank 0's memory takes one-sided operations while rank 0 computes. Tried out when the group is made.
  bool makes_progress() const { return makes_progress_; }
  // Something that has to live as long as the group.
  std::shared_ptr<void>& kept_alive() { return kept_alive_; }

  void file_opened() { files_.fetch_add(1); }
  void file_closed();  // collective: may free the group

 private:
  friend class SlotPointer;
  friend class OneSidedPointer;
  static constexpr int64_t kSlots = 256;  // in one window
  struct Row {
    MPI_Win window = MPI_WIN_NULL;
    MPI_Aint shift = 0;                       // of the first slot from the window's start
    PointerSlot* slots = nullptr;             // of use where memory is shared, and on rank 0
    std::unique_ptr<PointerSlot[]> unshared;  // where this MPI has no windows here
  };
  void add_row();
  bool try_progress();
  bool all_have(int code);
  const Row& row(int64_t number) const { return rows_[number / kSlots]; }
  PointerSlot& slot(int64_t number) { return rows_[number / kSlots].slots[number % kSlots]; }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  bool keep_, shares_memory_ = true, makes_progress_ = false;
  std::shared_ptr<void> kept_alive_;
  std::atomic<int> files_{0};
  std::vector<Row> rows_;
  int64_t next_ = 0;
};

}  // namespace holdfast::frontend
