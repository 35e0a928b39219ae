// Files of checkpoints that several ranks write: they grow on the nodes' targets.
#include <fcntl.h>

#include <algorithm>

#include "checkpoint/elsewhere.hpp"
#include "checkpoint/together.hpp"
#include "frontend/posix/checkpoints_state.hpp"

namespace holdfast::frontend::posix {

bool Checkpoints::is_shared(const File& file) const {
  std::lock_guard lock(state_->mutex);
  return state_->is_shared(file);
}

void Checkpoints::seen_together(const File& file, bool anew) {
  std::lock_guard lock(state_->mutex);
  state_->together.insert(file.path);
  if (!anew) return;
  state_->begins(file.named.step);
  state_->steps_together.insert(file.named.step);
}

// The versions that there are, and what becomes one.
Result<std::vector<Checkpoints::State::InPool>> Checkpoints::State::begun_in_pool(const File& file) {
  std::vector<InPool> all;
  if (patterns.are_shared(file.named.part)) {  // before the versions: one is among both, or one of them
    const auto nodes = checkpoint::SharedFiles::look(run, settings);
    const auto shared = nodes ? nodes->find_all() : Result<std::vector<checkpoint::SharedFile>>(nodes.status());
    if (!shared) return shared.status();
    for (const checkpoint::SharedFile& one : *shared) all.push_back({one.name.version_in(run), nodes->is_unwritten(one)});
  }
  const auto found = versions.look(settings.local, settings.deadline_ms);
  if (!found) return found.status();
  for (const catalog::FoundVersion& one : *found) all.push_back({*one.manifest.version, false});
  // Nodes that do not answer may have it alone, and what is written after it comes after it.
  for (const LocalName& name : completed_together)
    if (const auto version = checkpoint::version_of(name, run, patterns, "")) all.push_back({*version, false});
  return all;
}

// What ranks write together leaves nothing in the node's directory: its versions in the pool count with what is here.
Result<LocalName> Checkpoints::State::next_name_in_pool(const File& file, bool written_anew, std::string* before) {
  learn_of_removals(file);
  const Listed here = files.listed();
  auto next = next_name(file, written_anew, here);
  if (!next) return next;
  LocalName& name = *next;
  const LocalName as_here = name;
  const auto found = begun_in_pool(file);
  if (!found) return found.status();
  uint64_t last_step = run.from ? run.from->step : 0;
  const auto last_here = here.last_of_rank(name.rank, name.writer);
  uint64_t last_of_rank = last_here ? last_here->written : 0;
  const layout::Version *of_file = nullptr, *in_place = nullptr;  // the last ones; what is here may be later than what is protected
  const auto order = [](const auto& one) { return std::pair(one.written, one.number); };
  for (const auto& [version, is_untouched] : *found) {
    if (version.run != run.id || version.attempt != run.attempt) continue;
    name.written = std::max(name.written, version.written + 1);
    const bool has_its_place = version.rank == name.rank && version.writer == name.writer && !version.roll && !is_untouched;
    if (has_its_place && version.written > last_of_rank)
      last_of_rank = version.written, name.turn = turn_after(version.step, version.turn, name.step);
    if (has_its_place && (!last_here || order(*last_here) < order(version)) && (!in_place || order(*in_place) < order(version))) in_place = &version;
    if (version.file != file.path) continue;
    if (version.number >= name.number) name.number = version.number + 1, of_file = &version;
    last_step = std::max(last_step, version.step);
  }
  if (in_place) name.fewest = checkpoint::fewest_after(*in_place, name.step);
  if (in_place && written_anew && in_place->step == name.step) name.times = in_place->times + 1;
  if (!written_anew && of_file && of_file->written) {  // as in next_name
    name.written = of_file->written, name.turn = of_file->turn, name.fewest = of_file->fewest;
    name.times = of_file->times ? of_file->times + 1 : 0;
  } else if (const auto newest = written_anew || of_file || before ? std::nullopt : here.newest(file.path); newest && newest->name.written) {
    // By one rank alone: of what ranks write together a copy may be here that one of them has read.
    name.written = as_here.written, name.turn = as_here.turn, name.fewest = as_here.fewest, name.times = as_here.times;
  }
  if (!patterns.have_step() && !patterns.are_single()) name.step = std::max({name.step, last_step + written_anew, uint64_t(1)});
  for (const auto& [version, is_untouched] : *found) {
    const bool is_of_attempt = version.run == run.id && version.attempt == run.attempt && !version.roll && version.stem.empty();
    const bool has_its_place = is_of_attempt && version.step == name.step && version.rank == name.rank && version.file != file.path;
    if (before && has_its_place && here.hidden_number(version.file).value_or(0) < version.number) *before = version.file;
  }
  return next;
}

Result<LocalName> Checkpoints::State::next_name_together(const File& file, bool written_anew) {
  std::string before;
  auto next = next_name_in_pool(file, written_anew, &before);
  if (next && !before.empty() && patterns.stem(file.path).empty())
    return Status(Kind::invalid, file.path + ": " + why_second(next->step, before), EINVAL);
  return next;
}

// What another node has closed is waited for. Whoever has closed it just now has a version of a number that may be given here, and is looked for again.
Result<Checkpoints::Together> Checkpoints::begin_together(const File& file, int flags, mode_t mode, const Settings& settings) {
  constexpr int most_looks = 5;
  if (checkpoint::look_elsewhere(file.path, state_->node, state_->run, state_->settings).is_coming) HF_TRY(state_->await_protection(file, 0));
  std::lock_guard lock(state_->mutex);
  auto begun = state_->begin_together_now(file, flags, mode, settings);
  for (int looks = 1; looks < most_looks && begun.status().kind() == Kind::stale; ++looks)
    begun = state_->begin_together_now(file, flags, mode, settings);
  return begun;
}

namespace {

// Which version, in whatever state its local file is.
std::string version_in(const Checkpoints::Sight& sight) { return sight.path.substr(sight.path.rfind('/') + 1); }

}  // namespace

Result<Checkpoints::Together> Checkpoints::State::begin_together_now(const File& file, int flags, mode_t mode, const Settings& settings) {
  auto sight = look_locked(file);
  if (!sight) return sight.status();
  const bool there = sight->what == Sight::local || (sight->what == Sight::as_without && catalog::look(file.path, true).ok());
  if (there && (flags & O_CREAT) && (flags & O_EXCL)) return Status(Kind::exists, "", EEXIST);
  if (!there && !(flags & O_CREAT)) return Status(Kind::not_found, "", ENOENT);
  if (const auto here = files.newest(file.path); here && here->state == checkpoint::State::writing && !here->is_untouched)
    return Status(Kind::busy, file.path + ": a program has it open to write by itself; let it close the file before ranks open it together");
  HF_TRY(files.make());
  auto name = next_name_together(file, (flags & O_CREAT) != 0);
  if (!name) return name.status();
  HF_TRY(checkpoint::encode(*name).status());
  const auto now = look_locked(file);  // else it is not what the number before stands for
  if (!now) return now.status();
  if (now->what != sight->what || version_in(*now) != version_in(*sight))
    return Status(Kind::stale, file.path + ": others write it again and again while ranks open it: let one write it after the other", EBUSY);
  const bool may_stay_so = there && (flags & O_ACCMODE) == O_RDWR;
  if (!may_stay_so && (!there || (flags & O_CREAT))) begins(name->step);
  (void)catalog::make_with_parents(catalog::parent_of(file.path));
  // Before there is anything that would have to be taken back.
  const auto last = there ? open_seen(file, *sight) : Result<catalog::Descriptor>(catalog::Descriptor());
  if (!last) return last.status();
  auto located = checkpoint::grow(name->version_in(run), node, mode, settings);
  if (!located) return located.status();
  Together growing{std::move(*located), std::move(*name), !there, may_stay_so};
  const std::string note = files.path(checkpoint::State::together, growing.name);
  Status begun = may_stay_so ? Status() : note_together(growing.name);
  if (begun && there) begun = checkpoint::begin_with(growing.located, last->get(), file.path, settings);
  if (!begun) {
    (void)catalog::unlink_file(note);
    checkpoint::give_up(growing.located);
    return begun;
  }
  together.insert(file.path);
  return growing;
}

Status Checkpoints::State::note_together(const LocalName& name) const {
  return files.put_into(checkpoint::State::together, [&] { return catalog::make_file(files.path(checkpoint::State::together, name), 0600); });
}

Status Checkpoints::written_together(const LocalName& name) {
  std::lock_guard lock(state_->mutex);
  HF_TRY(state_->files.make());
  return state_->note_together(name);
}

void Checkpoints::ended_together(const LocalName& name, bool is_torn) {
  std::lock_guard lock(state_->mutex);
  if (is_torn) (void)state_->files.move(name, checkpoint::State::together, checkpoint::State::torn);
  else (void)catalog::unlink_file(state_->files.path(checkpoint::State::together, name));
}

// Until its first write nobody minds it, so another one may have written the file since. Of two with one number one would be lost without a word.
Status Checkpoints::State::check_not_overtaken(const LocalName& name) {
  HF_TRY(checkpoint::check_not_overtaken(name, node, run, settings, versions));
  const auto here = files.newest(name.file);
  bool is_overtaken = here && !here->is_untouched && here->name.number >= name.number;
  const auto found = versions.look(settings.local, settings.deadline_ms);
  if (!found) return found.status();
  for (const catalog::FoundVersion& one : *found) {
    const layout::Version& version = *one.manifest.version;
    is_overtaken |= version.run == run.id && version.attempt == run.attempt && version.file == name.file && version.number >= name.number;
  }
  return is_overtaken
             ? Status(Kind::busy, name.file + ": another program wrote it as well while ranks had it open: let one write it after the other", EBUSY)
             : Status();
}

Result<int> Checkpoints::end_together(const Together& file, bool keep) {
  std::lock_guard lock(state_->mutex);
  State& state = *state_;
  const auto version = checkpoint::version_of(file.name, state.run, state.patterns, "");
  const Status alone = keep && file.may_stay_so ? state.check_not_overtaken(file.name) : Status();
  const Result<int> complete = !alone ? alone : keep ? checkpoint::complete(file.located, *version, state.settings) : Result<int>(0);
  if (!keep || !complete) checkpoint::give_up(file.located);
  else state.files.forget_hidden(file.name.file, file.name.number), state.completed_together.push_back(file.name);
  const std::string marker = state.files.path(checkpoint::State::together, file.name);
  if (complete) (void)catalog::unlink_file(marker);
  else (void)state.files.move(file.name, checkpoint::State::together, checkpoint::State::torn);
  return complete;
}

}  // namespace holdfast::frontend::posix
