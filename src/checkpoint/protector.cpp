#include "checkpoint/protector.hpp"

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/roll.hpp"

namespace holdfast::checkpoint {

namespace {

constexpr uint64_t most_rolled_bytes = 64 << 20;
constexpr unsigned most_incomplete_looks = 8;

}  // namespace

Protector::Protector(Settings settings, Run run, const std::string& own, std::function<void(const std::string&)> say)
    : settings_(std::move(settings)),
      run_(std::move(run)),
      own_(own),
      say_(std::move(say)),
      files_(parse_node_path(own).path, run_.id, run_.attempt) {
  auto patterns = Patterns::parse(settings_.checkpoint, settings_.complete);
  if (patterns && patterns->are_rolled()) patterns = Patterns::resolve(settings_.checkpoint, settings_.complete);
  if (patterns && patterns->are_rolled()) patterns_ = std::move(*patterns);
}

Status Protector::begin() {
  HF_TRY(files_.make_all());
  const auto anew = files_.was_started_anew();
  if (!anew) return anew.status();
  if (*anew && patterns_) HF_TRY(catalog::make_file(fmt::format("{}/{}", files_.directory(), started_anew), 0600));
  if (*anew)
    for (const State state : {State::closed, State::protecting})
      for (const LocalName& name : files_.list(state))
        fail(name, Status(Kind::lost, "its node was started anew before it was protected, and may have lost a part of it"), state);
  return {};
}

bool Protector::work() {
  protect_all();
  return renew_next();
}

bool Protector::finish_closed() {
  protect_all();
  return files_.list(State::closed).empty();
}

bool Protector::end() {
  for (const LocalName& name : files_.list(State::closed)) fail(name, Status(Kind::busy, "a program still has it open to write"));
  for (const LocalName& name : files_.list(State::writing))
    if (!has_writers(files_.path(State::writing, name))) (void)files_.move(name, State::writing, State::torn);
  for (const LocalName& name : files_.list(State::together)) (void)files_.move(name, State::together, State::torn);
  return failed_ == 0;
}

// First what one that was killed had in hands. No file goes back to a state of before: who looks for it lists them in their order, and would miss it.
void Protector::protect_all() {
  for (const LocalName& name : files_.list(State::protecting)) protect_taken(name);
  for (const LocalName& name : files_.list(State::closed))
    if (!has_writers(files_.path(State::closed, name))) protect_one(name);
}

// What the checkpoint that this attempt began with has lost with its nodes: each node makes its share of the files anew, one at a time, and what the
// program writes comes first. What cannot be made anew now is left to the next attempt.
bool Protector::renew_next() {
  if (!run_.from || run_.from->drained || renewed_ || !files_.list(State::closed).empty()) return false;
  if (looks_to_leave_out_ > 0) {
    --looks_to_leave_out_;
    return false;
  }
  const auto found = versions_.look(run_.nodes, settings_.deadline_ms);
  const catalog::FoundVersion* const next = found ? next_to_renew(*found) : nullptr;
  if (!next) {
    // Where nodes answer late it is looked for again, less and less often.
    renewed_ = (found && has_seen_all(*found)) || ++incomplete_looks_ > most_incomplete_looks;
    looks_to_leave_out_ = 1u << incomplete_looks_;
    return false;
  }
  asked_.insert(next->manifest.file_id);
  const Status done = renew(next->manifest, run_.nodes, settings_);
  if (!done) say_(fmt::format("what was lost of {} is not made anew: {}", next->manifest.path, done.sentence()));
  return true;
}

// All files of what the attempt has begun with could be read; or a later checkpoint is whole, and it may have been dropped.
bool Protector::has_seen_all(const std::vector<catalog::FoundVersion>& found) const {
  for (const Checkpoint& one : checkpoints_of(protected_of(found))) {
    if (one.run != run_.id || !one.whole()) continue;
    if (one.attempt == run_.attempt || (one.attempt == run_.from->attempt && one.step == run_.from->step)) return true;
  }
  return false;
}

const catalog::FoundVersion* Protector::next_to_renew(const std::vector<catalog::FoundVersion>& found) const {
  for (const catalog::FoundVersion& one : found) {
    const layout::Version& version = *one.manifest.version;
    const bool ours = version.run == run_.id && version.attempt == run_.from->attempt && version.step == run_.from->step &&
                      run_.nodes[(version.rank + version.writer) % run_.nodes.size()] == own_;
    const bool possible = one.readable() && run_.nodes.size() >= size_t(one.manifest.geometry.scheme.width());
    if (ours && possible && !one.is_complete() && !asked_.count(one.manifest.file_id)) return &one;
  }
  return nullptr;
}

void Protector::protect_one(const LocalName& name) {
  if (files_.move(name, State::closed, State::protecting)) protect_taken(name);  // else written anew meanwhile, or gone with its node
}

void Protector::protect_taken(const LocalName& name) {
  const auto now = protect_now(name);
  if (!now) return fail(name, now.status(), State::protecting);
  if (now->lost_members) say_(fmt::format("{}: protected, but {} of its targets are lost", name.file, now->lost_members));
  (void)files_.move(name, State::protecting, State::kept);
  files_.forget_dropped();
}

Result<ProtectedNow> Protector::protect_now(const LocalName& name) const {
  const std::string path = files_.path(State::protecting, name);
  if (!patterns_) return protect(path, name.version_in(run_), own_, settings_);
  HF_TRY(complete(name));
  const bool is_roll = name.kind != LocalName::of_user;
  const auto content = is_roll ? catalog::read_small(path, most_rolled_bytes) : Result<std::string>("");
  if (!content) return content.status();
  const auto version = version_of(name, run_, *patterns_, *content);
  if (!version) return version.status();
  return is_roll ? protect_roll(*version, own_, settings_) : protect(path, *version, own_, settings_);
}

// It may be the last file of its checkpoint.
Status Protector::complete(const LocalName& name) const {
  const auto named = name.kind == LocalName::of_user ? patterns_->match(name.file) : std::nullopt;
  if (!named || !patterns_->completes(*named)) return {};
  return roll_completed(files_, name, !patterns_->have_rank(named->part), run_, settings_);
}

void Protector::fail(const LocalName& name, const Status& status, State from) {
  ++failed_;
  say_(fmt::format("{} is not protected: {}", name.file, status.sentence()));
  (void)files_.say_why(name, status.sentence());
  (void)files_.move(name, from, State::failed);
}

}  // namespace holdfast::checkpoint
