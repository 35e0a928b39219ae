#include "cli/job/singles.hpp"

#include <fmt/format.h>

#include <map>

#include "base/say.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/singles.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

using checkpoint::Checkpoint;
using checkpoint::LocalEntry;

namespace {

std::string first_of(const std::map<std::string, LocalEntry>& files) {
  return files.begin()->first + (files.size() == 1 ? "" : fmt::format(" and {} more", plural(files.size() - 1, "file")));
}

}  // namespace

void drop_removed_singles(const checkpoint::Survey& survey, const checkpoint::Run& run, const Settings& settings) {
  std::vector<checkpoint::Protected> removed = survey.removed;
  std::erase_if(removed, [&](const checkpoint::Protected& one) { return one.version.run != run.id; });
  checkpoint::Surveyor surveyor(settings.local, settings.deadline_ms);
  if (removed.empty() || !surveyor.look_at_versions()) return;
  for (const std::vector<layout::Manifest>& files : surveyor.stores_of(removed)) (void)checkpoint::drop(files, run.attempt, settings);
}

std::string are_singles(const Checkpoint& singles) { return name_of(singles) + (singles.files.size() == 1 ? " is" : " are"); }

void say_losses_of_singles(const checkpoint::Survey& survey, const checkpoint::Run& run, const Settings& settings) {
  for (const Checkpoint& one : survey.checkpoints) {
    if (!one.are_singles || one.run != run.id) continue;
    for (const checkpoint::Protected& file : one.lost)
      say("holdfast: {} cannot be read, and to open it fails: more of its nodes are lost than {} tolerates\n", file.version.file, *settings.protect);
    for (const std::string& path : checkpoint::gone_back(one))
      say("holdfast: the newest version of {} cannot be read, for more of its nodes are lost than {} tolerates; the one before is there\n", path,
          *settings.protect);
  }
  std::map<std::string, LocalEntry> left;
  if (const auto found = survey.attempts.find(run.id); found != survey.attempts.end())
    for (const layout::Attempt& attempt : found->second)
      if (attempt < run.attempt) left.merge(checkpoint::unprotected_singles(survey, run.id, attempt));
  if (!left.empty())
    say("holdfast: what was written last of {} was not protected when the job failed, and is not seen from here on\n", first_of(left));
}

bool say_unprotected_singles(const checkpoint::Survey& survey, const checkpoint::Run& run) {
  const auto left = checkpoint::unprotected_singles(survey, run.id, run.attempt);
  if (left.empty()) return false;
  say("holdfast: the program has ended well, and what was written last of {} is not protected; see: holdfast checkpoints\n", first_of(left));
  return true;
}

}  // namespace holdfast::cli
