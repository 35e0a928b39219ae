// What the nodes of a network file system remember (NFS, FUSE with write-back): pages and sizes of objects, looked at anew at an open only
// (close-to-open), and bytes that were written, which others see after a sync, a close, or whenever the node gets to it.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "target/memory.hpp"
#include "target/target.hpp"

namespace holdfast::sim {

// Which object stands under a name, and a number that grows with each change of it.
struct ObjectStamp {
  uint64_t identity = 0;
  int64_t changed = 0;
};

// One node's memory of one place.
class NodeMemory {
 public:
  explicit NodeMemory(uint64_t seed) : chance_(seed) {}
  // The power of the node goes: what it has not handed on is lost.
  void lose();

 private:
  friend class RememberedObject;
  friend class RememberingTarget;
  struct Pages {
    int64_t seen = 0;  // the stamp at the last look
    target::SparseBytes content;
    std::set<uint64_t> present;
    std::vector<std::pair<uint64_t, Bytes>> dirty;
    std::shared_ptr<target::Object> writer;  // by which they are handed on
  };
  bool one_in(uint64_t n) {
    chance_ = chance_ * 6364136223846793005ull + 1442695040888963407ull;
    return (chance_ >> 33) % n == 0;
  }

  uint64_t chance_;
  std::map<uint64_t, std::shared_ptr<Pages>> objects_;  // by identity
};

// The target as that node sees it. `stamp` says what stands under a name at the server.
std::shared_ptr<target::Target> make_remembering_target(std::shared_ptr<target::Target> inner, std::shared_ptr<NodeMemory> node,
                                                        std::function<ObjectStamp(const std::string&)> stamp);

}  // namespace holdfast::sim
