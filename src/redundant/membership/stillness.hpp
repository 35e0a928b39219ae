// Whether any rank goes on. Each process says every second where it stands, once all its threads wait: for its twins, at a call or a question, or in a call of
// MPI's for other ranks. Where all processes of the job have stood for long, and some of them wait for twins that are elsewhere, nothing will wake them but a
// network that is very late. Kept by the hub. Pure.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::redundant {

// For how long a process has stood, as it looks every second. Time in which it does not look counts as two looks at most: it was stopped then, perhaps with
// the whole job, and nothing could go on.
class Stood {
 public:
  static constexpr int64_t look_ms = 1000;

  int64_t look(bool still, int64_t now_ms) {
    const int64_t since = std::min(now_ms - std::exchange(looked_ms_, now_ms), 2 * look_ms);
    return stood_ms_ = still ? stood_ms_ + since : 0;
  }

 private:
  int64_t looked_ms_ = 0, stood_ms_ = 0;
};

class Stillness {
 public:
  // After so many deadlines without a move it is told.
  static constexpr int64_t deadlines = 3;

  struct Place {
    bool for_twins = false;
    int64_t stood_ms = 0;  // 0: it goes on
    std::string where = {};
  };
  void stands(int team, int rank, Place place) { places_[{rank, team}] = std::move(place); }
  // `living`: rank and team of all who have not ended. Lines for the user, once for each time that they all stand; else none.
  std::vector<std::string> judge(std::vector<std::pair<int, int>> living, int64_t deadline_ms);

 private:
  std::string line_of(int rank, const std::vector<std::pair<int, int>>& living) const;

  std::map<std::pair<int, int>, Place> places_;  // by rank and team
  bool told_ = false;
};

}  // namespace holdfast::redundant
