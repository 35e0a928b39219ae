#include "checkpoint/left_by_program.hpp"

#include <algorithm>

namespace holdfast::checkpoint {

std::optional<Checkpoint> left_by_program(const std::vector<Checkpoint>& all, const Run& run, const Checkpoint& begun) {
  const bool is_from = run.from && !run.from->drained && begun.run == run.id && begun.attempt == run.from->attempt && begun.step == run.from->step;
  if (!is_from || begun.writers > 0 || begun.are_singles || !begun.whole()) return {};
  Checkpoint left = begun;
  left.attempt = run.attempt;
  bool any = false;
  for (const Checkpoint& one : all) {  // in the order in which they were written
    if (one.run != run.id || one.attempt != run.attempt) continue;
    for (const auto& [place, file] : one.files) {
      // By its path: what is updated in place keeps its place, and what is truncated is of the next checkpoint.
      const Protected* const older = begun.file_at(file.version.file);
      if (!older) continue;
      if (!file.readable || !one.rivals.empty() || !one.torn_update.empty()) return {};
      left.files.at(FilePlace(older->version)) = file;
      left.step = std::max(left.step, file.version.step);
      any = true;
    }
  }
  if (!any) return {};
  left.bytes = 0;
  for (const auto& [place, file] : left.files) left.bytes += file.bytes;
  return left;
}

}  // namespace holdfast::checkpoint
