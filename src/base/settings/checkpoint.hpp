// What checkpoints read.
#pragma once
#include <string>
#include <vector>

namespace holdfast {

struct CheckpointSettings {
  std::vector<std::string> checkpoint;  // patterns of their files, with {step} and {rank}
  std::vector<std::string> complete;    // of those that are the last of their checkpoint
  bool protect_at_close = false;        // a close waits until its file is protected
};

}  // namespace holdfast
