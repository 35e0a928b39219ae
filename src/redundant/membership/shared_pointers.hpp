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
  // Files whose calls are known still.
  size_t kept() const { return files_.size(); }

 private:
  struct Made {
    uint64_t number = 0;
    PointerCall call;
    int64_t before = 0;
  };
  struct Calls {
    uint64_t used = 0;
    std::map<int, std::deque<Made>> made;  // by rank: the newest
  };
  static int64_t carry_out(int64_t& position, const PointerCall& call);
  void drop_the_oldest();

  std::map<uint64_t, int64_t> positions_;  // nobody tells that a file is closed: of all, or one that is used again would begin anew
  std::map<uint64_t, Calls> files_;        // of those that were used last
  uint64_t calls_ = 0;
};

}  // namespace holdfast::redundant
