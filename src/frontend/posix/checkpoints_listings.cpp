// What a program is to see of a directory of checkpoints: of its files, and of the directory itself.
#include <algorithm>

#include <fmt/format.h>

#include "catalog/user_files.hpp"
#include "checkpoint/directory_mark.hpp"
#include "checkpoint/elsewhere.hpp"
#include "checkpoint/leftovers.hpp"
#include "frontend/posix/checkpoints_state.hpp"

namespace holdfast::frontend::posix {

using checkpoint::DirectoryMark;

bool Checkpoints::may_lie_in(const std::string& directory) const { return state_->patterns.may_lie_in(directory); }
bool Checkpoints::may_lie_below(const std::string& directory) const { return state_->patterns.may_lie_below(directory); }

// Of all directories.
Result<Checkpoints::State::AllSeen> Checkpoints::State::see_all() {
  // Before those that are protected: what goes from one to the other is seen.
  const bool resumes = resumes_now();
  const auto closed = resumes ? std::vector<checkpoint::FoundElsewhere>() : checkpoint::closed_elsewhere(node, run, settings);
  const std::lock_guard lock(mutex);
  AllSeen all;
  if (any_shared()) {
    const auto nodes = checkpoint::SharedFiles::look(run, settings);
    const auto shared = nodes ? nodes->find_all() : Result<std::vector<checkpoint::SharedFile>>(nodes.status());
    if (!shared) return shared.status();
    for (const checkpoint::SharedFile& one : *shared) all.files.insert(one.name.file);
  }
  learn_of_removals();
  all.here = resumes ? checkpoint::LocalFiles::Seen() : files.see();
  all.files.insert(all.here.there.begin(), all.here.there.end());
  const auto found = look_at_versions([](const Found&) { return false; });
  if (!found) return found.status();
  const auto beside = beside_beginning(*found);
  const auto is_removed = [&](const std::string& file, uint32_t number) {
    const auto removed = all.here.removed.find(file);
    return removed != all.here.removed.end() && number <= removed->second;
  };
  for (const catalog::FoundVersion& one : *found)
    if (const layout::Version& version = *one.manifest.version; resumes ? is_resumed(version) : is_visible(one.manifest, beside))
      if (!is_removed(version.file, number_here(version))) all.files.insert(version.file);
  for (const auto& [address, one] : closed)
    if (!is_removed(one.name.file, one.name.number)) all.files.insert(one.name.file);
  return all;
}

Result<std::optional<Checkpoints::Listing>> Checkpoints::list(const std::string& directory) {
  const bool holds_steps = state_->patterns.may_hold_steps(directory) || state_->patterns.step_of_directory(directory);
  if (!state_->patterns.may_lie_in(directory) && !holds_steps) return std::optional<Listing>();
  auto shown = [this] {
    const std::lock_guard lock(state_->mutex);
    return state_->plain.shown();
  }();
  if (!shown) return shown.status();
  Listing listing{directory, {}, {}, std::move(*shown), {}};
  if (!state_->patterns.may_lie_in(directory)) return std::optional(std::move(listing));
  const auto all = state_->see_all();
  if (!all) return all.status();
  const auto add = [&](const std::string& file, std::set<std::string>& into) {
    if (catalog::parent_of(file) == directory && state_->patterns.match(file)) into.insert(catalog::name_of(file));
  };
  for (const std::string& file : all->files) add(file, listing.names);
  std::lock_guard lock(state_->mutex);
  for (const auto& [file, number] : all->here.removed)
    if (!state_->is_put_back(file)) add(file, listing.removed);
  bool has_asked = false;
  for (const auto& [file, number] : all->here.dropped) {
    if (catalog::parent_of(file) != directory || !listing.plain.has(file) || !catalog::look(file, true)) continue;  // of that nobody is asked
    const auto outdated = state_->is_outdated_at_its_path(file, number, !has_asked);
    if (!outdated) return outdated.status();
    if (*outdated) add(file, listing.removed);
    has_asked = true;
  }
  return std::optional(std::move(listing));
}

bool Checkpoints::hides(const Listing& listing, const std::string& name) const {
  const std::string path = fmt::format("{}/{}", listing.directory, name);
  if (checkpoint::is_directory_mark(name)) return true;
  if (!state_->patterns.match(path) || listing.names.count(name)) return false;
  return (listing.removed.count(name) || !listing.plain.has(path)) && !state_->is_no_file(path);
}

namespace {

// Of a directory as it stands, no deeper than patterns mean. False: something there is no checkpoint's, or is to be seen where it lies.
bool holds_hidden_alone(const checkpoint::Patterns& patterns, const checkpoint::PlainFiles::Shown& plain, const std::string& directory, bool& any) {
  const auto names = patterns.may_lie_below(directory) ? catalog::list_directory(directory) : Status(Kind::not_found, "");
  if (!names) return false;
  return std::all_of(names->begin(), names->end(), [&](const std::string& name) {
    const std::string path = directory + "/" + name;
    const auto there = catalog::look(path, false);
    if (there && there->directory()) return holds_hidden_alone(patterns, plain, path, any);
    if (there && checkpoint::is_directory_mark(name)) return true;
    any = true;
    return there && there->regular() && patterns.match(path) && !plain.has(path);
  });
}

}  // namespace

// Of what stands there: it holds something, and only an answer of the nodes can tell whether any of that is to be seen.
bool Checkpoints::State::may_be_unseen(const std::string& directory, const checkpoint::PlainFiles::Shown& plain, DirectoryMark mark) const {
  const auto there = catalog::look(directory, false);
  bool any = mark == DirectoryMark::removed;  // though its user has removed the rest
  return there && there->directory() && holds_hidden_alone(patterns, plain, directory, any) && any;
}

// All directories in or below which some are to be seen.
Result<std::set<std::string>> Checkpoints::State::directories_seen() {
  const auto all = see_all();
  if (!all) return all.status();
  std::set<std::string> holding;
  for (const std::string& file : all->files)
    for (std::string above = catalog::parent_of(file); above.size() > 1; above = catalog::parent_of(above))
      if (!holding.insert(above).second) break;
  return holding;
}

// The nodes are asked once for all that are listed, and only where something may be hidden.
bool Checkpoints::hides_directory(const Listing& listing, const std::string& name) {
  const std::string path = fmt::format("{}/{}", listing.directory, name);
  const auto step = state_->patterns.step_of_directory(path);
  if (!step) return false;
  const DirectoryMark mark = state_->mark_of(path);
  const bool is_begun_with = state_->run.from && *step == state_->run.from->step;
  if (mark == DirectoryMark::made || (is_begun_with && mark == DirectoryMark::none) || !state_->may_be_unseen(path, listing.plain, mark))
    return false;
  if (!listing.holding) {
    auto holding = state_->directories_seen();
    if (!holding) return false;
    listing.holding = std::move(*holding);
  }
  return !listing.holding->contains(path);
}

// Before an attempt has begun with anything all that stands there is seen. Replicas look at different times, and do not look.
DirectoryMark Checkpoints::State::mark_of(const std::string& directory) const {
  return may_have_unseen_directories() ? checkpoint::directory_mark(directory, run) : DirectoryMark::none;
}

bool Checkpoints::State::may_have_unseen_directories() const { return run.from && run.teams == 1; }

bool Checkpoints::may_have_unseen_directories() const {
  return state_->may_have_unseen_directories() && state_->patterns.have_directories_of_steps();
}

// What the attempt has begun with, and what is older, stays until the program removes it, though its files have gone: programs remove what they remember.
bool Checkpoints::is_unseen_directory(const std::string& directory) {
  const auto step = state_->patterns.step_of_directory(directory);
  if (!step || !state_->may_have_unseen_directories()) return false;
  const DirectoryMark mark = state_->mark_of(directory);
  if (mark == DirectoryMark::made) return false;
  if (mark == DirectoryMark::none && (*step <= state_->run.from->step || *step <= state_->files.listed().newest_step())) return false;
  const auto plain = [this] {
    const std::lock_guard lock(state_->mutex);
    return state_->plain.shown();
  }();
  if (!plain || !state_->may_be_unseen(directory, *plain, mark)) return false;
  const auto holding = state_->directories_seen();
  return holding && !holding->contains(directory);
}

Status Checkpoints::directory_is_made(const std::string& directory) {
  return checkpoint::mark_directory(directory, state_->run, DirectoryMark::made);
}

Status Checkpoints::directory_is_removed(const std::string& directory) {
  if (!may_have_unseen_directories() || !state_->patterns.step_of_directory(directory)) return {};
  const Status marked = checkpoint::mark_directory(directory, state_->run, DirectoryMark::removed);
  return marked.kind() == Kind::exists ? Status(Kind::not_found, "", ENOENT) : Status();  // where it cannot be noted it stays, as it has always been
}

bool Checkpoints::cleared_of_marks(const std::string& directory) const {
  return may_have_unseen_directories() && state_->patterns.step_of_directory(directory) && checkpoint::clear_of_marks(directory);
}

}  // namespace holdfast::frontend::posix
