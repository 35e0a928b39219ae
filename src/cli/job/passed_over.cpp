#include "cli/job/passed_over.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/say.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/given_up.hpp"
#include "checkpoint/pattern.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

using checkpoint::Checkpoint;

void say_passed_over(const checkpoint::Survey& survey, const checkpoint::Run& run, const checkpoint::Age& begun) {
  std::set<std::string> said;  // of each attempt that has written it in part
  for (const Checkpoint& one : survey.checkpoints) {
    if (one.run != run.id || !is_before(begun, one.age())) continue;
    if (!one.torn_update.empty())
      say("holdfast: checkpoint {} is passed over: {} was not written again to its end, and other files of it had been before\n", one.step,
          one.torn_update);
    const std::string half = why_half_written(one);
    if (!half.empty() && said.insert(half).second) say("holdfast: checkpoint {} is passed over: {}\n", one.step, half);
    if (one.is_emptied) say("holdfast: checkpoint {} is passed over: all its files are empty\n", one.step);
    if (!one.removed.empty())
      say("holdfast: checkpoint {} is passed over: the program has removed {}, and has begun nothing newer\n", one.step, one.removed);
  }
}

void say_what_has_changed(const checkpoint::Survey& survey, const checkpoint::Run& run) {
  const auto is_it = [&](const checkpoint::DrainedCheckpoint& one) {
    return run.from && !run.from->drained && one.run == run.id && one.attempt == run.from->attempt && one.step == run.from->step;
  };
  const auto changed = std::find_if(survey.changed.begin(), survey.changed.end(), is_it);
  // A drain that a node could not note leaves an older record.
  if (changed == survey.changed.end() || std::any_of(survey.drained.begin(), survey.drained.end(), is_it)) return;
  const std::string& path = changed->files.front().path;
  say("holdfast: {} was {} since it was drained; checkpoint {} is read as it was protected; to begin without it: holdfast checkpoints --drop {}\n",
      path, catalog::look(path, true) ? "changed" : "removed", run.from->step, run.from->step);
}

void say_what_is_newer(const checkpoint::Survey& survey, const checkpoint::Run& run, const Checkpoint& newest, const std::set<uint64_t>& said,
                       const Settings& settings) {
  const Checkpoint* last = nullptr;
  for (const Checkpoint& one : survey.checkpoints)
    if (one.run == run.id && one.attempt == run.attempt && is_before(newest.age(), one.age()) && one.rivals.empty() && !one.has_all() &&
        !one.is_emptied)
      last = &one;
  const auto is_of_newest = [&](const auto& file) {
    const checkpoint::Protected* const other = newest.file_at(file.second.version.file);
    return other && other->file_id == file.second.file_id;
  };
  if (!last || std::all_of(last->files.begin(), last->files.end(), is_of_newest) || said.contains(last->step) || was_removed(*last, survey.local))
    return;
  const auto patterns = checkpoint::Patterns::resolve(settings.checkpoint, settings.complete);
  const bool are_counted = patterns && !patterns->have_step() && patterns->all().size() > 1;
  say("holdfast: checkpoint {} is newer and not whole, so it is not at its paths: of its {} {} {} protected (the first is {}){}\n", last->step,
      plural(last->files_of_all(), "file"), last->files.size(), last->files.size() == 1 ? "is" : "are", last->files.begin()->second.version.file,
      are_counted ? "; all patterns without {step} have to be written equally often" : "");
}

}  // namespace holdfast::cli
