// Agents on the nodes of a Slurm job.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace holdfast::cli {

// Whether this process is in a Slurm allocation and has srun.
bool is_slurm_job();
// The steps of this job that are not Holdfast's own, "17.3", with their nodes; none outside of one.
std::map<std::string, std::vector<std::string>> program_steps();
// A launcher that dies with one of its nodes leaves its steps behind, which hold their processors: ends those that have a lost node and are not in
// `before`.
void end_steps_with(const std::vector<std::string>& lost, const std::map<std::string, std::vector<std::string>>& before);
// Starts a job step beside the others, one task a node, which is that node's agent. It outlives this process and the loss of nodes, and ends with the
// agents. `patterns`: directories with {node}.
class SlurmStep {
 public:
  static Result<SlurmStep> start(const std::vector<std::string>& nodes, const std::vector<std::string>& patterns, uint64_t linger_s);
  // The last of what it and its tasks have said so far.
  std::string said() const;
  bool ended() const;

 private:
  explicit SlurmStep(std::string log) : log_(std::move(log)) {}
  std::string log_;
};

}  // namespace holdfast::cli
