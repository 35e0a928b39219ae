// How fast reads and writes have been, shared out among the replicas and not: what `auto` goes by where teams have nodes of their own. Of one file system, in
// this process; the leader alone measures and chooses.
#pragma once
#include <array>
#include <cstdint>
#include <mutex>

namespace holdfast::file {

enum class Work : uint8_t { read, write };

class Paces {
 public:
  // Of the file system with this device number; for as long as the process lives.
  static Paces& of(uint64_t device);

  // Which way the next call of so many bytes goes.
  bool shares(Work work, uint64_t bytes);
  void took(Work work, bool shared, uint64_t bytes, uint64_t nanoseconds);

 private:
  struct Way {
    double rate = 0;  // bytes a nanosecond
    uint32_t seen = 0;
  };
  // Calls of about one size.
  struct Size {
    std::array<Way, 2> ways;  // not shared out, shared out
    uint64_t calls = 0, next_trial = first_trial;
    bool knows() const { return ways[0].seen >= enough && ways[1].seen >= enough; }
    bool shared_is_faster() const { return ways[1].rate > ways[0].rate; }
  };
  static constexpr uint32_t enough = 2;
  static constexpr uint64_t first_trial = 64;
  static constexpr int sizes = 12;
  using Sizes = std::array<Size, sizes>;
  static int size_of(uint64_t bytes);
  static const Size* nearest_that_knows(const Sizes& all, int to);

  std::mutex mutex_;
  std::array<Sizes, 2> works_;
};

}  // namespace holdfast::file
