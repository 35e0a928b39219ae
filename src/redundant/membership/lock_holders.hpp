// Which parts of files ranks hold locks of. The kernel forgets a lock with its process, and gives it to whoever waits, also in the moment before a team that
// has lost one rank is ended as a whole. A rank's locks outlive its leader: until the next one has them again nobody else is to. Kept by the hub. Pure.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

namespace holdfast::redundant {

// As it is in a frame.
struct LockedPart {
  enum What : uint64_t { takes = 1, takes_over, gives_up };  // `takes_over`: also what is another rank's, which has not come back to it
  uint64_t what = takes, kind = 0;                           // locks of different kinds do not know of each other
  uint64_t begin = 0, end = 0, exclusive = 0;
};

class LockHolders {
 public:
  // False: another rank holds something that forbids it.
  bool call(uint64_t file, int rank, const LockedPart& part);
  // The rank is no more.
  void gone(int rank);

 private:
  struct Held {
    int rank;
    LockedPart part;
  };
  std::map<uint64_t, std::vector<Held>> files_;
};

}  // namespace holdfast::redundant
