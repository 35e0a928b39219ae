// A simulated node is lost: its processes are killed and its directory is emptied, as a node's own disk goes with it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "checkpoint/run.hpp"

namespace holdfast::cli {

struct SimulatedLoss {
  std::vector<uint32_t> nodes;  // numbers, from 1
  uint64_t step = 0;            // once this checkpoint, or a later one, is whole
};
Result<SimulatedLoss> parse_simulated_loss(const std::string& text, int nodes);

// The agent of the node and the ranks that the run has on it.
void lose_simulated_node(const std::string& address, const checkpoint::Run& run);
// Those of them that had not begun yet.
void kill_ranks_on(const std::string& address, const checkpoint::Run& run);

}  // namespace holdfast::cli
