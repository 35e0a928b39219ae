#include "redundant/membership/shared_pointers.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redundant {

namespace {

// A replica lacks what its leader was told in the last millisecond, so calls of long ago are not repeated.
constexpr size_t most_made = 256, most_files = 4096;

}  // namespace

int64_t SharedPointers::call(uint64_t file, int rank, uint64_t number, const PointerCall& call) {
  Calls& calls = files_[file];
  calls.used = ++calls_;
  std::deque<Made>& made = calls.made[rank];
  const auto then = std::find_if(made.begin(), made.end(), [&](const Made& one) { return one.number == number && one.call == call; });
  if (then != made.end()) return then->before;
  std::erase_if(made, [number](const Made& one) { return one.number >= number; });  // a lost leader's, whose clocks said otherwise
  made.push_back({number, call, carry_out(positions_[file], call)});
  if (made.size() > most_made) made.pop_front();
  const int64_t before = made.back().before;
  drop_the_oldest();
  return before;
}

int64_t SharedPointers::carry_out(int64_t& position, const PointerCall& call) {
  int64_t after = position;
  if (call.what == PointerCall::store) after = call.operand;
  if (call.what == PointerCall::add && (call.operand < 0 || __builtin_add_overflow(position, call.operand, &after))) return -1;
  return std::exchange(position, after);
}

void SharedPointers::drop_the_oldest() {
  if (files_.size() <= most_files) return;
  files_.erase(
      std::min_element(files_.begin(), files_.end(), [](const auto& one, const auto& other) { return one.second.used < other.second.used; }));
}

}  // namespace holdfast::redundant
