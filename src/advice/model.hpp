// What a call and a byte cost: time of a process = calls x latency + bytes / bandwidth.
//
// Both are fitted to what the log's processes have measured, where they have accesses of different sizes. The fit is by least squares of the relative
// error, over all files of one kind of file system and one direction. A log that has one size only cannot tell the two apart. Then the bandwidth is
// assumed (below), never less than what was seen, and the rest of a file's time is latency.
#pragma once
#include <map>
#include <string>

#include "advice/digest.hpp"

namespace holdfast::advice {

struct Cost {
  double latency = 0;    // seconds a call
  double bandwidth = 0;  // bytes a second, of one process
  bool assumed = false;  // the bandwidth
  double seconds(double calls, double bytes) const { return calls * latency + (bandwidth > 0 ? bytes / bandwidth : 0); }
};

// One stream to a shared or parallel file system (the single writers of the field's studies lie between 100 and 300 MB/s), and to the
// kernel's own memory.
inline constexpr double assumed_shared_bandwidth = 250e6;
inline constexpr double assumed_local_bandwidth = 2e9;
// What stays of a call that ends in a buffer in the process's memory.
inline constexpr double buffered_call_seconds = 0.2e-6;
inline constexpr double memory_bandwidth = 4e9;

inline double in_memory(double calls, double bytes) { return calls * buffered_call_seconds + bytes / memory_bandwidth; }

class Model {
 public:
  explicit Model(const Digest& digest);
  // Of the process that spent most time in this direction of the use: cost().seconds(its calls, its bytes) is its time.
  Cost cost(const Use& use, const Side& side) const;

 private:
  struct Fitted {
    double latency = 0, bandwidth = 0;  // bandwidth 0: the log cannot tell
  };
  static std::string kind_of(const Use& use, bool write);
  size_t nodes_;
  std::map<std::string, Fitted> fitted_;
};

}  // namespace holdfast::advice
