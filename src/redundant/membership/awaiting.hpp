// When all ranks begin to wait, before each send, until what their clocks have said is with all their twins. A rank whose program asks which message came
// may be told of one that was sent because of a clock. So the hub first has all others wait, and then lets it tell. Programs that never ask wait for
// nothing. Kept by the hub. Pure.
#pragma once
#include <compare>
#include <set>
#include <vector>

namespace holdfast::redundant {

class Awaiting {
 public:
  struct Who {
    int team = 0, rank = 0;
    auto operator<=>(const Who&) const = default;
  };
  // Each one that joins later is told, too.
  bool has_begun() const { return begun_; }
  void begin(const std::vector<Who>& all);
  // Each of these: who may tell now.
  std::vector<Who> asks(const Who& one);
  std::vector<Who> waits(const Who& one);  // or is no more

 private:
  std::vector<Who> may_tell();

  bool begun_ = false;
  std::set<Who> lacking_, asking_;
};

}  // namespace holdfast::redundant
