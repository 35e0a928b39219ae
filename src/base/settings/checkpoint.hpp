// What checkpoints read.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast {

struct CheckpointSettings {
  std::vector<std::string> checkpoint;  // patterns of their files, with {step} and {rank}
  std::vector<std::string> complete;    // of those that are the last of their checkpoint
  bool protect_at_close = false;        // a close waits until its file is protected
  bool units_remote = false;            // all units of a checkpoint lie on other nodes than the one that wrote it
  uint64_t pack_below_bytes = 1 << 20;  // smaller files of one node and step share a protected file; 0: none do
};

}  // namespace holdfast
