// How far a process is in its program: calls on files that it has begun, and answers that it has asked for. In memory that outlives it: who moves its output
// reads that when it has died.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/raw_syscalls.hpp"

namespace holdfast::redundant {

struct HowFar {
  uint64_t calls = 0, asked = 0;
  bool operator==(const HowFar&) const = default;
};

class Progress {
 public:
  Progress();
  void calls() { add(page_->calls); }
  void asks() { add(page_->asked); }
  // What comes then has a page of its own, which nobody reads: it is at no place that another one could be at.
  void becomes_another(int team) { page_->calls.store(~uint64_t(0) - uint64_t(team), std::memory_order_relaxed); }
  raw::Fd take_memory() { return std::move(memory_); }  // none where there is no such memory
  // By another process.
  static std::optional<HowFar> read(int memory);

 private:
  struct Page {
    std::atomic<uint64_t> calls{0}, asked{0};
  };
  // One thread at a time.
  static void add(std::atomic<uint64_t>& count) { count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

  Page own_;  // where there is no other
  Page* page_ = &own_;
  raw::Fd memory_;
};

}  // namespace holdfast::redundant
