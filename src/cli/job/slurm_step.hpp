// Agents on the nodes of a Slurm job.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "cli/job/node_agents.hpp"

namespace holdfast::cli {

// Whether this process is in a Slurm allocation and has srun.
bool is_slurm_job();
// Whether it is a task of a job step, which runs on each of its nodes; neither a batch script nor what salloc has started.
bool is_slurm_task();
// The steps of this job that are not Holdfast's own, "17.3", with their nodes; none outside of one.
std::map<std::string, std::vector<std::string>> program_steps();
// A launcher that dies with one of its nodes leaves its steps behind, which hold their processors. Ends those that are not in `before` and whose srun
// has `variable` in its environment, with a value that so `begins`. Of those whose srun has ended, those that have a lost node. Answers what is left:
// Slurm goes on with a step whose srun died at that moment until the job ends, although its tasks have ended.
std::vector<std::string> end_steps_left(const std::string& variable, const std::string& begins, const std::vector<std::string>& lost,
                                        const std::map<std::string, std::vector<std::string>>& before);
// Words that run something as a job step of its own on each of the nodes, one task a node, beside the steps that hold their processors. The loss of
// a node or of a task ends no other one. `name`: what of Holdfast's it is.
std::string step_on(const std::vector<std::string>& nodes, const std::string& name);
// Starts a job step beside the others, one task a node, which is that node's agent. It outlives this process and the loss of nodes, and ends with the
// agents. `patterns`: directories with {node}.
class SlurmStep {
 public:
  static Result<SlurmStep> start(const std::vector<std::string>& nodes, const std::vector<std::string>& patterns, const AgentStart& how);
  // The last of what it and its tasks have said so far.
  std::string said() const;
  bool ended() const;

 private:
  explicit SlurmStep(std::string log) : log_(std::move(log)) {}
  std::string log_;
};

}  // namespace holdfast::cli
