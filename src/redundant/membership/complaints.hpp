// Twins that do not reach each other, as one of them says. Its node may be busy for a moment, so it tries again, and takes the complaint back where it has got
// through. Where one of the two has died, that is why. So the hub judges after a time in which it would have heard of that. Kept by the hub. Pure.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::redundant {

class Complaints {
 public:
  // After the deadline. By then whoever is dead is known to be.
  static constexpr int64_t grace_ms = 2000;

  struct One {
    int team = 0, rank = 0, other = 0;
    std::string why = {};
    int64_t at_ms = 0;
  };
  void add(One one) { all_.push_back(std::move(one)); }
  void take_back(int team, int rank, int other);
  void forget(int rank);
  // Those that are old enough. They are not kept.
  std::vector<One> ripe(int64_t now_ms, int64_t deadline_ms);

 private:
  std::vector<One> all_;
};

}  // namespace holdfast::redundant
