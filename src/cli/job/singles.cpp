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

bool has_match(const Checkpoint& one, const checkpoint::Patterns& patterns) {
  const auto is_match = [&](const checkpoint::Protected& file) { return patterns.match(file.version.file).has_value(); };
  if (!one.are_singles) return is_match(one.files.begin()->second);
  return std::any_of(one.files.begin(), one.files.end(), [&](const auto& file) { return is_match(file.second); }) ||
         std::any_of(one.lost.begin(), one.lost.end(), is_match);
}

Status check_are_of_one_kind(const checkpoint::Survey& survey, const checkpoint::Patterns& patterns) {
  const Checkpoint* last = nullptr;
  for (const Checkpoint& one : survey.checkpoints)
    if (one.has_all() && has_match(one, patterns) && (!last || last->run <= one.run)) last = &one;
  if (!last || last->are_singles == patterns.are_single()) return {};
  return Status(Kind::invalid,
                fmt::format("the last run with such files has {}, and --checkpoint {} asks for {}: go on with the pattern that it had, or leave out "
                            "--resume, and the program sees what is plain at its paths",
                            last->are_singles ? "them protected one by one" : "them as checkpoints", patterns.texts(),
                            patterns.are_single() ? "files one by one" : "checkpoints"));
}

std::string why_from_start(const checkpoint::Survey& survey, const checkpoint::Run& run, const Settings& settings) {
  size_t plain = 0;
  for (const Checkpoint& one : survey.checkpoints)
    if (one.run == run.id) plain += one.plain.size();
  if (plain > 0) return fmt::format("attempt {} begins with {} as drained", run.attempt.number, plural(plain, "file"));
  const auto patterns = checkpoint::Patterns::resolve(settings.checkpoint, settings.complete);
  return fmt::format("no {} yet; attempt {} begins from the start", patterns && patterns->are_single() ? "file is protected" : "checkpoint is whole",
                     run.attempt.number);
}

std::string are_singles(const Checkpoint& singles) { return name_of(singles) + (singles.files.size() == 1 ? " is" : " are"); }

void say_losses_of_singles(const checkpoint::Survey& survey, const checkpoint::Run& run, const Settings& settings) {
  for (const Checkpoint& one : survey.checkpoints) {
    if (!one.are_singles || one.run != run.id) continue;
    for (const checkpoint::Protected& file : one.lost)
      say("holdfast: {} cannot be read, and to open it fails: more of its nodes are lost than {} tolerates\n", file.version.file, *settings.protect);
    for (const checkpoint::Protected& file : one.plain)
      say("holdfast: {} cannot be read from the nodes, and is there as it was drained\n", file.version.file);
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
