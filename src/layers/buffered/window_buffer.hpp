// One buffer: the bytes of one window of the file, as far as they are known here.
#pragma once
#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "base/intervals.hpp"

namespace holdfast::layers {

class WindowBuffer {
 public:
  // Memory that is not touched costs nothing yet.
  explicit WindowBuffer(uint64_t bytes);
  ~WindowBuffer();
  WindowBuffer(const WindowBuffer&) = delete;
  WindowBuffer& operator=(const WindowBuffer&) = delete;

  enum class Busy { no, writing, reading };  // by the background; while writing the bytes may be read, but not changed

  void stand_for(uint64_t window) {
    window_ = window;
    valid_ = {};
    dirty_ = {};
  }
  uint64_t window() const { return window_; }
  uint64_t begin() const { return window_ * bytes_; }  // in the file

  // Offsets below are within the window.
  void put(uint64_t at, ByteView data);                                   // from the program
  void fill(uint64_t at, uint64_t count) { valid_.add(at, at + count); }  // bytes(at, count) now hold what is below
  void get(uint64_t at, ByteSpan into) const;
  ByteSpan bytes(uint64_t at, uint64_t count) { return {storage_ + at, count}; }
  bool has(uint64_t at, uint64_t count) const { return valid_.covers(at, at + count); }
  bool dirty() const { return !dirty_.ranges().empty(); }
  bool full() const { return dirty_.covers(0, bytes_); }
  // What of [at, at + count) is not known here.
  std::vector<Extent> gaps(uint64_t at, uint64_t count) const;
  std::vector<Extent> dirty_ranges() const;
  void clean() { dirty_ = {}; }

  Busy busy = Busy::no;
  uint64_t used = 0;  // when last: the least goes first

 private:
  uint64_t bytes_;
  std::byte* storage_;
  uint64_t window_ = 0;
  Intervals valid_, dirty_;  // dirty bytes are valid too
};

}  // namespace holdfast::layers
