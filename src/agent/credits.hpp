// How much memory an agent's clients take up together. Pure: whoever calls it lets one at a time in, and waits where it says so.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace holdfast::agent {

class Credits {
 public:
  explicit Credits(uint64_t all) : all_(all) {}
  using Holder = uint64_t;  // the caller's number for it; it holds nothing yet, and waits for nothing

  // Asks for so many bytes, in turn: nobody is overtaken by those who want less. Who wants more than there are gets all of them, alone. False: they
  // are not to be had yet.
  bool take(Holder holder, uint64_t bytes);
  bool has(Holder holder) const { return held_.contains(holder); }
  // What it holds from now on, though there be less: what could not be known before. Who has got what he asked for by that.
  std::vector<Holder> hold(Holder holder, uint64_t bytes);
  // All that it holds, and its turn.
  std::vector<Holder> give_back(Holder holder);
  bool is_waited_for() const { return !waiting_.empty(); }
  uint64_t held() const { return lent_; }

 private:
  struct Wish {
    Holder holder;
    uint64_t bytes;
  };
  bool fits(uint64_t bytes) const { return lent_ + bytes <= all_; }
  void lend(const Wish& wish);
  std::vector<Holder> deal();
  const uint64_t all_;
  uint64_t lent_ = 0;
  std::map<Holder, uint64_t> held_;
  std::deque<Wish> waiting_;
};

}  // namespace holdfast::agent
