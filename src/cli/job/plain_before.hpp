// Plain files that stood at checkpoints' paths before a run began. Natively the program would have replaced those that it has written anew.
#pragma once
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/drained.hpp"

namespace holdfast::cli {

class PlainBefore {
 public:
  PlainBefore();
  // The program has written this path anew, and a newer checkpoint is whole, or this one.
  void replaced(const std::string& path);
  // When what is newest has its plain files: those of before go, but for files of checkpoints that were drained, of which these may be some.
  void remove(const std::vector<checkpoint::DrainedCheckpoint>& drained, const std::set<std::string>& kept);

 private:
  const int64_t began_ns_;  // of this process
  std::mutex mutex_;
  std::set<std::string> replaced_;
};

}  // namespace holdfast::cli
