#include "cli/job/closed_before.hpp"

#include <set>

#include "base/say.hpp"
#include "checkpoint/local.hpp"
#include "cli/job/protectors.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

using checkpoint::LocalEntry;
using checkpoint::Run;
using checkpoint::State;

bool protect_what_was_closed(const checkpoint::Survey& survey, const Run& run, const Settings& settings, const std::string& with) {
  const auto attempts = survey.attempts.find(run.id);
  if (run.teams > 1 || attempts == survey.attempts.end() || attempts->second.empty()) return false;
  Run before = run;
  before.attempt = *attempts->second.rbegin();
  before.from.reset();
  before.nodes = survey.live;
  std::set<std::string> files;
  for (const LocalEntry& one : survey.local)
    if (one.run == before.id && one.attempt == before.attempt && one.state == State::closed) files.insert(one.name.file);
  if (files.empty()) return false;
  say("holdfast: {} that attempt {} had closed {} not protected yet: that is done first\n", plural(files.size(), "file"), before.attempt.number,
      files.size() == 1 ? "is" : "are");
  Protectors protectors;
  for (const Status& remark : protectors.start(before, settings, with)) say("holdfast: {}\n", remark.sentence());
  (void)protectors.finish();
  return true;
}

}  // namespace holdfast::cli
