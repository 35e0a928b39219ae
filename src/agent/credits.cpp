#include "agent/credits.hpp"

#include <algorithm>

namespace holdfast::agent {

void Credits::lend(const Wish& wish) {
  held_[wish.holder] = wish.bytes;
  lent_ += wish.bytes;
}

bool Credits::take(Holder holder, uint64_t bytes) {
  const Wish wish{holder, std::min(bytes, all_)};
  if (waiting_.empty() && fits(wish.bytes)) return lend(wish), true;
  waiting_.push_back(wish);
  return false;
}

std::vector<Credits::Holder> Credits::deal() {
  std::vector<Holder> got;
  for (; !waiting_.empty() && fits(waiting_.front().bytes); waiting_.pop_front()) {
    lend(waiting_.front());
    got.push_back(waiting_.front().holder);
  }
  return got;
}

std::vector<Credits::Holder> Credits::hold(Holder holder, uint64_t bytes) {
  uint64_t& held = held_[holder];
  lent_ += bytes - held;
  held = bytes;
  return deal();
}

std::vector<Credits::Holder> Credits::give_back(Holder holder) {
  std::erase_if(waiting_, [&](const Wish& wish) { return wish.holder == holder; });
  if (const auto found = held_.find(holder); found != held_.end()) {
    lent_ -= found->second;
    held_.erase(found);
  }
  return deal();
}

}  // namespace holdfast::agent
