// A set of members of a file, by their index. Units of a row have masks of their own: a row has at most 40 units, a file far more members.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace holdfast {

class MemberSet {
 public:
  static constexpr int most = 1024;  // members are 0 to most - 1

  MemberSet() = default;
  static MemberSet of(int member) {
    MemberSet one;
    one.add(member);
    return one;
  }
  static MemberSet first(int count) {
    MemberSet all;
    const size_t whole = word_of(count);
    std::fill_n(all.words_.begin(), whole, ~uint64_t(0));
    if (whole < all.words_.size()) all.words_[whole] = bit_of(count) - 1;
    return all;
  }

  bool has(int member) const { return words_[word_of(member)] >> (unsigned(member) % word_bits) & 1; }
  void add(int member) { words_[word_of(member)] |= bit_of(member); }
  void remove(int member) { words_[word_of(member)] &= ~bit_of(member); }
  void clear() { words_ = {}; }
  bool any() const {
    return std::any_of(words_.begin(), words_.end(), [](uint64_t word) { return word != 0; });
  }
  bool none() const { return !any(); }
  int count() const {
    int members = 0;
    for (const uint64_t word : words_) members += word ? std::popcount(word) : 0;
    return members;
  }

  MemberSet& operator|=(const MemberSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  MemberSet& operator&=(const MemberSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    return *this;
  }
  MemberSet& operator-=(const MemberSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
    return *this;
  }
  friend MemberSet operator|(MemberSet one, const MemberSet& other) { return one |= other; }
  friend MemberSet operator&(MemberSet one, const MemberSet& other) { return one &= other; }
  friend MemberSet operator-(MemberSet one, const MemberSet& other) { return one -= other; }
  bool operator==(const MemberSet&) const = default;

  // Over the members, ascending.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    using pointer = const int*;
    using reference = int;
    Iterator() = default;
    Iterator(const MemberSet& set, int from) : set_(&set), member_(set.next(from)) {}
    int operator*() const { return member_; }
    Iterator& operator++() {
      member_ = set_->next(member_ + 1);
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return member_ == other.member_; }

   private:
    const MemberSet* set_ = nullptr;
    int member_ = most;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, most}; }

 private:
  static constexpr size_t word_bits = 64;
  static size_t word_of(int member) { return size_t(unsigned(member)) / word_bits; }
  static uint64_t bit_of(int member) { return uint64_t(1) << (unsigned(member) % word_bits); }
  // The first one from there on; `most` where there is none.
  int next(int from) const {
    for (size_t word = word_of(from); word < words_.size(); ++word) {
      const uint64_t left = word == word_of(from) ? words_[word] & ~(bit_of(from) - 1) : words_[word];
      if (left) return int(word * word_bits) + std::countr_zero(left);
    }
    return most;
  }

  std::array<uint64_t, size_t(most) / word_bits> words_{};
};

}  // namespace holdfast
