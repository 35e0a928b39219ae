// Where the shared file pointers of the job stand: one for all replicas, kept by the hub. A call on one is a rank's, and has the same number in all its
// replicas. It is made once: a leader that repeats the call of a lost one is told what that one was told. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

namespace holdfast::redundant {

struct PointerCall {
  enum What : uint64_t { add, load, store } what = load;
  int64_t operand = 0;
  bool operator==(const PointerCall&) const = default;
};

class SharedPointers {
 public:
  // Where it stood before; -1: it cannot stand there. `file`: the same in all ranks that have opened it together.
  int64_t call(uint64_t file, int rank, uint64_t number, const PointerCall& call);
  size_t kept() const { return files_.size(); }

 private:
  struct Made {
    uint64_t number = 0;
    PointerCall call;
    int64_t before = 0;
  };
  struct Pointer {
    int64_t position = 0;
    uint64_t used = 0;
    std::map<int, std::deque<Made>> made;  // by rank: the newest
  };
  static int64_t carry_out(Pointer& pointer, const PointerCall& call);
  void drop_the_oldest();

  std::map<uint64_t, Pointer> files_;
  uint64_t calls_ = 0;
};

}  // namespace holdfast::redundant
