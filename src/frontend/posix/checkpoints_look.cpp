// Of a checkpoint's file: what a program is to see of it, here and on the other nodes.
#include <fcntl.h>

#include <algorithm>
#include <tuple>

#include "catalog/environment.hpp"
#include "catalog/pool.hpp"
#include "checkpoint/ahead.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/drain.hpp"
#include "checkpoint/elsewhere.hpp"
#include "checkpoint/leftovers.hpp"
#include "checkpoint/protect.hpp"
#include "frontend/posix/checkpoints_state.hpp"

namespace holdfast::frontend::posix {

namespace {

// Of the versions of one file that is protected by itself, over all attempts of the run.
using Number = checkpoint::PlainFiles::Number;
Number number_of(const layout::Version& version) { return {version.attempt, version.number}; }

}  // namespace

// Of this attempt, or of the checkpoint that it began with.
bool Checkpoints::State::is_visible(const layout::Manifest& manifest, const std::set<std::string>& beside) const {
  const layout::Version& version = *manifest.version;
  const bool from = run.from && !run.from->drained && checkpoint::is_of(version, run.id, *run.from) &&
                    !checkpoint::is_older_than(version, *run.from) && !checkpoint::is_later_than(version, manifest.file_id, *run.from);
  return version.run == run.id && !version.roll && ((from && !beside.contains(version.file)) || version.attempt == run.attempt);
}

// Its older versions have the same name, and other ranks write it: alone, or together, of which only those that were there are told.
bool Checkpoints::State::may_be_outdated(const File& file, const LocalFile& here) const {
  using checkpoint::State;
  const bool is_own = patterns.have_rank(file.named.part) && file.named.rank == rank;
  const bool is_finished = here.state == State::restored || here.state == State::kept || here.state == State::twin || here.is_untouched;
  if (is_of_all(file)) return is_finished || here.state == State::failed;
  // What that rank has written is on its node. What another one has is nobody's word for what that rank has done since: it does not wait for that.
  const bool is_by_its_rank = here.name.writers > 0 ? here.name.writer == file.named.rank : here.name.writer == 0;
  const bool is_being_written = here.state == State::writing && !here.is_untouched;
  if (here.state == State::restored || !is_by_its_rank) return here.is_overtaken || (!is_own && !is_being_written);
  return here.is_overtaken && is_finished;
}

// What this attempt began with was whole. While a version is made anew a look may miss both, and nodes may answer late: looks until that `suffices`.
Result<Checkpoints::State::Found> Checkpoints::State::look_at_versions(const std::function<bool(const Found&)>& suffices) {
  constexpr int most_looks = 5;
  for (int looks = 1;; ++looks) {
    auto found = versions.look(settings.local, settings.deadline_ms);
    if (!found || looks == most_looks || suffices(*found)) return found;
    if (sees_all_of_beginning(*found)) return found;
  }
}

// Of how many versions there should be nobody knows: an older one, or none, is no answer of a look that may have missed the newest. So it is where the newest cannot
// be read: it may be what gives way to the one that was made anew of it, on nodes that were asked before.
Result<Checkpoints::State::Found> Checkpoints::State::look_for_single(const File& file) {
  constexpr int most_looks = 5;
  for (int looks = 1;; ++looks) {
    auto found = versions.look(settings.local, settings.deadline_ms);
    if (!found || looks == most_looks || !(versions.may_miss(file.path) || lacks_newest(*found, file))) return found;
  }
}

// Whether there is a version that cannot be read, and none as new that can.
bool Checkpoints::State::lacks_newest(const Found& found, const File& file) const {
  const catalog::FoundVersion* const best = newest_of(found, file, {});
  return std::any_of(found.begin(), found.end(), [&](const catalog::FoundVersion& one) {
    const layout::Version& version = *one.manifest.version;
    if (version.run != run.id || version.file != file.path || one.readable()) return false;
    return !best || !best->readable() || number_of(*best->manifest.version) < number_of(version);
  });
}

// How many files there should be that are protected one by one nobody knows: what an attempt has begun with goes where all is written anew, or removed.
// One is not seen where more nodes keep silent than it may lack.
bool Checkpoints::State::sees_all_of_beginning(const Found& found) const {
  if (!patterns.are_single())
    return checkpoint::has_all_of_beginning(found, run) || checkpoint::is_past_beginning(found, run) ||
           checkpoint::has_given_way(run, node, settings);
  const auto scheme = layout::Scheme::parse(settings.protect.value_or(""));
  return versions.silent().size() <= (scheme ? size_t(scheme->m) : 0);
}

// What was written of that step and does not belong to it: by path, for what is made anew is there twice for a while. Of two names of one place the older one
// was renamed, or removed.
std::set<std::string> Checkpoints::State::beside_beginning(const std::vector<catalog::FoundVersion>& found) const {
  std::set<std::string> paths;
  const auto begun = patterns.are_rolled() || has_two_names(found) ? checkpoint::beginning_and_older(found, run) : std::nullopt;
  if (!begun) return paths;
  for (const checkpoint::Protected& file : begun->older) paths.insert(file.version.file);
  for (const auto& [place, file] : begun->files) paths.erase(file.version.file);
  for (const auto& [place, file] : begun->beside) paths.insert(file.version.file);
  return paths;
}

// Some place of what this attempt began with.
bool Checkpoints::State::has_two_names(const std::vector<catalog::FoundVersion>& found) const {
  if (patterns.are_single()) return false;
  std::map<uint32_t, std::string_view> names;
  for (const catalog::FoundVersion& one : found) {
    const layout::Version& version = *one.manifest.version;
    const bool is_from = run.from && version.run == run.id && version.attempt == run.from->attempt && version.step == run.from->step;
    if (is_from && !version.roll && names.try_emplace(version.rank, version.file).first->second != version.file) return true;
  }
  return false;
}

// As a checkpoint is chosen: what is older than a version that cannot be read is not of it. Of files of no checkpoint an older one is taken then.
const catalog::FoundVersion* Checkpoints::State::newest_of(const Found& found, const File& file, const std::set<std::string>& beside) const {
  const auto order = [](const catalog::FoundVersion& one) {
    const layout::Version& version = *one.manifest.version;
    return std::make_tuple(version.is_single() && one.readable(), version.attempt, version.step, version.number, one.readable());
  };
  const catalog::FoundVersion* newest = nullptr;
  for (const catalog::FoundVersion& one : found) {
    const layout::Version& version = *one.manifest.version;
    if (version.file == file.path && is_visible(one.manifest, beside) && (!newest || order(*newest) < order(one))) newest = &one;
  }
  return newest;
}

// Of files that are protected one by one: why what is to be shown may not be the newest. What was lost before this attempt `run` has named; what only keeps
// silent may come back. A version has more members than its scheme has data units: while no more nodes keep silent than these, some member shows it.
std::string Checkpoints::State::why_not_newest(const Found& found, const File& file, const Number& shown) const {
  const auto& silent = versions.silent();
  const auto would_be_readable = [&](const catalog::FoundVersion& one) {
    const auto& members = one.manifest.members;
    const auto silent_ones = std::count_if(members.begin(), members.end(),
                                           [&](const auto& member) { return std::find(silent.begin(), silent.end(), member.path) != silent.end(); });
    return one.missing_members <= uint64_t(silent_ones) + uint64_t(one.manifest.geometry.scheme.m);
  };
  const bool is_lost = std::any_of(found.begin(), found.end(), [&](const catalog::FoundVersion& one) {
    const layout::Version& version = *one.manifest.version;
    if (version.file != file.path || one.readable() || !is_visible(one.manifest, {}) || number_of(version) <= shown) return false;
    return version.attempt == run.attempt || would_be_readable(one);
  });
  if (is_lost) return fmt::format("{}: too many of the nodes that keep what was written last are lost, or do not answer", file.path);
  // What is of this attempt can only be outdone on its own nodes.
  const auto may_have_newer = [&](const std::string& address) {
    return shown.first != run.attempt || std::find(run.nodes.begin(), run.nodes.end(), address) != run.nodes.end();
  };
  const auto scheme = layout::Scheme::parse(settings.protect.value_or(""));
  const auto count = size_t(std::count_if(silent.begin(), silent.end(), may_have_newer));
  if (!scheme || count <= size_t(std::max(scheme->k, scheme->m))) return "";
  return fmt::format("{}: what was written last cannot be told, as {} nodes do not answer; bring them back and try again", file.path, count);
}

// The newest version of this attempt, else the one that the attempt began with. `number_of_own`: of the file that this node has itself.
Result<std::optional<catalog::FoundVersion>> Checkpoints::State::find_in_pool(const File& file, uint32_t number_of_own) {
  const auto is_there = [&](const Found& all) {
    const auto* const newest = newest_of(all, file, {});
    return newest && newest->readable();
  };
  const auto suffices = [&](const Found& all) { return !is_of_beginning(file) || (is_there(all) && !patterns.are_rolled()); };
  auto found = patterns.are_single() ? look_for_single(file) : look_at_versions(suffices);
  if (!found) return found.status();
  const catalog::FoundVersion* const seen = newest_of(*found, file, beside_beginning(*found));
  const catalog::FoundVersion* const best = seen && seen->readable() ? seen : nullptr;
  const auto known = patterns.are_single() ? plain.drained(file.path, !best && seen) : Result<std::optional<Number>>(std::optional<Number>());
  const auto drained = known ? *known : std::nullopt;
  const auto number = best ? std::optional(number_of(*best->manifest.version)) : std::nullopt;
  const auto own = number_of_own > 0 ? std::optional(Number(run.attempt, number_of_own)) : std::nullopt;
  const auto shown = std::max({number, own, drained});
  const std::string why = shown && patterns.are_single() ? why_not_newest(*found, file, *shown) : "";
  if (!why.empty()) return Status(Kind::lost, why);
  if (drained && (!number || *number < *drained)) return std::optional<catalog::FoundVersion>();
  if (best) return std::optional(*best);
  if (seen) return Status(Kind::lost, fmt::format("{}: too many of the nodes that keep it are lost", file.path));
  // Not to be told from one that was never there: the program would begin from the start without a word.
  if (!is_of_beginning(file) || sees_all_of_beginning(*found)) return std::optional<catalog::FoundVersion>();
  if (patterns.are_single())
    return Status(Kind::lost, fmt::format("{}: whether it is there cannot be told, as {} nodes do not answer; bring them back and try again",
                                          file.path, versions.silent().size()));
  return Status(Kind::lost, fmt::format("{}: checkpoint {} was whole when this attempt began with it, and not all of it can be seen now", file.path,
                                        run.from->step));
}

Result<std::optional<layout::Manifest>> Checkpoints::State::in_pool(const File& file, uint32_t number_of_own) {
  auto found = find_in_pool(file, number_of_own);
  if (!found) return found.status();
  return *found ? std::optional((*found)->manifest) : std::nullopt;
}

void Checkpoints::State::note_opened(const File& file) {
  const uint32_t part = file.named.part;
  if (!patterns.have_rank(part) && opened_parts.insert(part).second) checkpoint::note_opened(files, part);
}

Status Checkpoints::State::restore(const File& file, const layout::Manifest& manifest) {
  HF_TRY(files.make());
  note_opened(file);
  const layout::Version& version = *manifest.version;
  const uint64_t written = version.attempt == run.attempt ? version.written : 0;
  LocalName name{version.step, version.rank, version.ranks, number_here(version), file.path, written, written ? version.turn : 0};
  if (written) name.times = version.times, name.fewest = version.fewest;
  const std::string there = files.path(checkpoint::State::restored, name);
  if (there.empty()) return checkpoint::encode(name).status();
  checkpoint::wait_for_ahead(files, manifest.file_id, settings.lock_patience_ms);
  if (catalog::look(there, false)) return {};
  const std::string half = files.scratch();
  // Where it was described its content comes into that file: a program that compares what it has looked at with what it opens finds one file.
  const bool is_described = catalog::move(checkpoint::described(files, manifest.file_id), half).ok();
  Status status = checkpoint::fetch(manifest, half, settings, {}, is_described);
  if (status.kind() == Kind::no_space) {
    (void)catalog::unlink_file(half);
    if (const auto found = run.teams > 1 ? Result<Found>(status) : versions.look(settings.local, settings.deadline_ms))
      checkpoint::make_room(files, run, manifest.size, *found), status = checkpoint::fetch(manifest, half, settings);
  }
  if (!status && status.kind() != Kind::no_space) (void)files.note_unread(manifest.file_id, status.sentence());
  if (status) status = files.put_into(checkpoint::State::restored, [&] { return catalog::move(half, there); });
  if (!status) (void)catalog::unlink_file(half);
  return status;
}

// It may have been made anew meanwhile, on other nodes; and that one too, by protectors of several attempts.
Status Checkpoints::State::restore_newest(const File& file, layout::Manifest manifest) {
  constexpr int most_versions = 8;
  for (int tried = 1;; ++tried) {
    Status restored = restore(file, manifest);
    if (restored || tried == most_versions) return restored;
    auto again = in_pool(file);
    if (!again || !*again || (*again)->file_id == manifest.file_id) return restored;
    manifest = std::move(**again);
  }
}

// Of a file that is protected by itself, and was removed: somebody else has put a plain one at its path since, or a link, which no drain leaves there. A drain
// that goes on, or was killed, may have placed files of which no record is there yet.
bool Checkpoints::State::is_put_back(const std::string& path) {
  if (!patterns.are_single()) return false;
  if (catalog::read_link(path)) return true;
  if (!catalog::look(path, false) || checkpoint::is_drain_beside(path)) return false;
  const auto drained = plain.drained(path, true);
  return drained && !*drained;
}

// What stands at its path, where this attempt has written the file and it gave way since: it is of before, unless a drain has left there what gave way.
Result<bool> Checkpoints::State::is_outdated_at_its_path(const std::string& path, std::optional<uint32_t> dropped, bool asks_anew) {
  if (!dropped || patterns.are_single() || !catalog::look(path, true)) return false;
  const auto drained = plain.drained(path, asks_anew);
  if (!drained) return drained.status();
  return !*drained || **drained < Number(run.attempt, *dropped);
}

// What another rank has removed of its own files is noted on its node alone. Of other files this node has a note, unless it was cut off just then. It would show them,
// and what is written anew would get a number of before the removal, and go with what was removed. What this rank alone removes nobody is asked of.
void Checkpoints::State::learn_of_removals(const std::optional<File>& file) {
  if (!patterns.are_single() && (run.teams > 1 || ranks == 1 || (file && is_told_here(*file)))) return;
  const auto removed = checkpoint::removed_elsewhere(file ? std::optional(file->path) : std::nullopt, node, run, settings);
  if (removed.empty()) return;
  const Listed here = files.listed();
  const auto noted = here.see().removed;
  for (const auto& [path, name] : removed) {
    const auto known = noted.find(path);
    const bool is_known = (known != noted.end() && known->second >= name.number) || here.last_number(path) > name.number;
    if (!is_known) (void)files.hide(name);
  }
}

// What stands there by itself and can be no checkpoint, whatever its name: a directory, a pipe, a socket, a link that leads to none of these files either.
bool Checkpoints::State::is_no_file(const std::string& path) const {
  const auto there = catalog::look(path, false);
  if (!there || there->regular()) return false;
  if (!there->link()) return true;
  const auto end = catalog::look(path, true);
  return !end || !end->regular() || patterns.match(catalog::resolved_path(path));
}

Result<Checkpoints::Sight> Checkpoints::State::look_locked(const File& file, bool fetches) {
  auto sight = look_for_file(file, fetches);
  if (sight && sight->what == Sight::absent && is_no_file(file.path)) return Sight{Sight::as_without, ""};
  return sight;
}

// What gave way here was protected before: an older version, or none, is the answer of a look that has missed it.
Status Checkpoints::State::check_none_is_missed(const File& file, const std::optional<layout::Manifest>& found) const {
  const auto evicted = patterns.are_single() ? std::nullopt : files.evicted_number(file.path);
  if (!evicted || (found && number_here(*found->version) >= *evicted)) return {};
  return Status(Kind::lost, fmt::format("{}: too many of the nodes that keep what was written last are lost, or do not answer", file.path));
}

Result<Checkpoints::Sight> Checkpoints::State::look_for_file(const File& file, bool fetches) {
  auto here = files.newest(file.path);
  if (here && !may_be_outdated(file, *here)) return Sight{Sight::local, files.path(here->state, here->name)};
  learn_of_removals(file);
  here = files.newest(file.path);
  const auto hidden = here ? std::nullopt : files.hidden_number(file.path);
  if (hidden && is_told_here(file)) return Sight{Sight::absent, ""};
  auto manifest = in_pool(file, here ? here->of_version() : 0);
  // Removed by one of those who write it, and not written anew since by another.
  if (hidden && (!manifest || !*manifest || number_here(*(*manifest)->version) <= *hidden))
    return Sight{is_put_back(file.path) ? Sight::as_without : Sight::absent, ""};
  if (here && !manifest && patterns.are_single()) return manifest.status();
  const bool is_newest = here && (!manifest || !*manifest || number_here(*(*manifest)->version) <= here->of_version());
  if (is_newest) return Sight{Sight::local, files.path(here->state, here->name)};
  if (!manifest) return manifest.status();
  HF_TRY(check_none_is_missed(file, *manifest));
  if (*manifest && !fetches) {
    const std::string at = checkpoint::described(files, (*manifest)->file_id);
    HF_TRY(files.make());
    if (!catalog::look(at, false)) HF_TRY(checkpoint::make_hollow(files, at, (*manifest)->size, (*manifest)->mode));
    return Sight{.what = Sight::local, .path = at, .described = number_here(*(*manifest)->version)};
  }
  if (*manifest) {
    HF_TRY(restore_newest(file, **manifest));
    here = files.newest(file.path);
    if (here) return Sight{Sight::local, files.path(here->state, here->name)};
  }
  // What lies at the user's path is of before: not to be mixed with the checkpoint that this attempt has begun with, unless it is that.
  const auto shown = plain.shown();
  if (!shown) return shown.status();
  const auto outdated = is_outdated_at_its_path(file.path, shown->has(file.path) ? files.dropped_number(file.path) : std::nullopt);
  if (!outdated) return outdated.status();
  return Sight{shown->has(file.path) && !*outdated ? Sight::as_without : Sight::absent, ""};
}

// What another node has closed is to be seen here (close-to-open), and is as soon as it is protected. What is told here asks no other node.
Status Checkpoints::State::wait_to_see(const File& file) {
  uint32_t known = 0;
  {
    std::lock_guard lock(mutex);
    if (together.contains(file.path)) return {};
    const auto here = files.newest(file.path);
    const auto hidden = here ? std::nullopt : files.hidden_number(file.path);
    if (here ? !may_be_outdated(file, *here) : hidden && is_told_here(file)) return {};
    known = here ? here->of_version() : hidden.value_or(0);
  }
  return await_protection(file, known);
}

bool Checkpoints::State::has_protected(const File& file, uint32_t number) {
  std::lock_guard lock(mutex);
  const auto found = versions.look(settings.local, settings.deadline_ms);
  return found && std::any_of(found->begin(), found->end(), [&](const catalog::FoundVersion& one) {
           const layout::Version& version = *one.manifest.version;
           return version.run == run.id && version.attempt == run.attempt && version.file == file.path && version.number >= number && one.readable();
         });
}

// What is written to that name while it waits need not be protected. A protector that works on nothing may never come: its node may have none, or somebody may still
// have the file open. One that was waited for in vain is not waited for again.
Status Checkpoints::State::await_protection(const File& file, uint32_t known) {
  using std::chrono::milliseconds;
  constexpr milliseconds first_pause(10), longest_pause(500);
  auto coming = checkpoint::coming_elsewhere(file.path, known, "", node, run, settings);
  if (!coming) return {};
  const auto [address, number, unused] = *coming;
  const auto now = [] { return catalog::environment().now(); };
  const auto until = now() + patience();
  auto worked_on = now();
  for (auto pause = first_pause;; pause = std::min(pause * 2, longest_pause)) {
    if (coming->is_worked_on) worked_on = now();
    const bool is_in_vain = now() >= until || now() - worked_on > milliseconds(settings.deadline_ms);
    std::unique_lock lock(mutex);
    uint32_t& in_vain = awaited_in_vain[file.path];
    if (is_in_vain) in_vain = std::max(in_vain, number);
    if (number <= in_vain) return checkpoint::refuse_coming(parse_node_path(address).node, file.path);
    lock.unlock();
    catalog::environment().wait(pause);
    coming = checkpoint::coming_elsewhere(file.path, known, address, node, run, settings);
    if (!coming || (coming->number > number && has_protected(file, number))) return {};
  }
}

// Who goes on with a file that several nodes may write begins with what another one has closed. Nobody begins it while another one has it open.
Status Checkpoints::State::wait_to_write(const File& file) {
  for (;;) {
    const checkpoint::Elsewhere others = checkpoint::look_elsewhere(file.path, node, run, settings);
    if (!others.writing.empty()) return checkpoint::refuse_beside(others.writing, file.path);
    if (!others.is_coming) return {};
    HF_TRY(await_protection(file, 0));
  }
}

Result<Checkpoints::Sight> Checkpoints::look_alone(const File& file, bool fetches) {
  const auto shared = find_shared(file);
  if (!shared) return shared.status();
  if (*shared) {
    const auto bytes = state_->size_of(**shared);
    return bytes ? stand_in_for(**shared, *bytes) : bytes.status();
  }
  HF_TRY(state_->wait_to_see(file));
  std::lock_guard lock(state_->mutex);
  return state_->look_locked(file, fetches);
}

std::string Checkpoints::scratch() const { return state_->files.scratch(); }

// What is to be seen of it, to be read.
Result<catalog::Descriptor> Checkpoints::State::open_seen(const File& file, Sight sight) {
  for (;;) {
    const std::string from = sight.what == Sight::local ? sight.path : file.path;
    catalog::Descriptor opened = catalog::open_to_read(from);
    if (opened) return opened;
    const Status failed = Status::from_errno(errno, from);
    if (failed.kind() != Kind::not_found) return failed;
    // It has gone on to its next state meanwhile.
    const auto again = look_locked(file);
    if (!again) return again.status();
    if (again->what != Sight::local || again->path == from) return failed;
    sight = *again;
  }
}

Result<std::optional<layout::Manifest>> Checkpoints::version_to_read(const File& file) {
  const auto shared = find_shared(file);
  if (!shared) return shared.status();
  if (*shared) return std::optional((*shared)->manifest);
  if (!state_->patterns.have_rank(file.named.part)) HF_TRY(state_->wait_to_see(file));
  std::lock_guard lock(state_->mutex);
  state_->learn_of_removals(file);
  const auto here = state_->files.newest(file.path);
  const bool may_be_older = here && state_->may_be_outdated(file, *here);
  if (state_->patterns.have_rank(file.named.part) || (here && !may_be_older)) return std::optional<layout::Manifest>();
  const auto hidden = here ? std::nullopt : state_->files.hidden_number(file.path);
  const auto found = state_->find_in_pool(file);
  if (!found) return found.status();
  const bool removed = *found && hidden && state_->number_here(*(*found)->manifest.version) <= *hidden;
  // One that is not complete is being made anew just now, and goes. One in a pack is no protected file of its own.
  const bool usable = *found && !removed && (*found)->is_complete() && !(*found)->manifest.within;
  return usable ? std::optional((*found)->manifest) : std::nullopt;
}

Status Checkpoints::remove_alone(const File& file, std::optional<LocalName>& removed) {
  if (state_->is_anothers(file)) (void)state_->await_protection(file, 0);
  else state_->wait_for_coming(file);
  std::lock_guard lock(state_->mutex);
  if (const auto shared = state_->remove_shared(file); !shared || *shared) return shared.status();
  state_->learn_of_removals(file);
  auto last = state_->last_seen(file);
  if (!last) return last.status();
  if (!*last) return state_->may_have_given_way(file) ? state_->remove_what_gave_way(file) : Status(Kind::not_found, "", ENOENT);
  (*last)->number = std::max((*last)->number, state_->files.last_number(file.path));  // what was dropped may come back with a node
  const bool has_plain = state_->plain.has(file.path);                                // in whose place the program has written this one
  const bool is_single = state_->patterns.are_single();
  // Where a plain file would be seen as one that was put there since it goes first.
  if (has_plain && is_single) HF_TRY(catalog::unlink_file(file.path));
  HF_TRY(state_->hide(file, **last));
  removed = **last;
  return has_plain && !is_single ? catalog::unlink_file(file.path) : Status();
}

// Programs remove checkpoints that they have written a while ago, and fail where one of these is not there. It was, and gave way to newer ones.
bool Checkpoints::State::may_have_given_way(const File& file) {
  if (patterns.are_single() || !patterns.have_step() || file.named.rank >= ranks) return false;
  const bool shows_plain = plain.has(file.path) && catalog::look(file.path, false);
  if (shows_plain || is_no_file(file.path) || files.hidden_number(file.path)) return false;
  return file.named.step < std::max(run.from ? run.from->step : 0, files.listed().newest_step());
}

// What was dropped while a node was away may come back with it.
Status Checkpoints::State::remove_what_gave_way(const File& file) {
  LocalName name{file.named.step, patterns.place(file.named, ranks), patterns.files_of_all(ranks), files.last_number(file.path), file.path};
  if (!is_told_here(file))
    for (const auto& [address, one] : checkpoint::files_elsewhere(file.path, {checkpoint::State::dropped}, node, run, settings))
      name.number = std::max(name.number, one.name.number);
  if (name.number > 0) return hide(file, name);
  return removed_unseen.insert(file.path).second ? Status() : Status(Kind::not_found, "", ENOENT);
}

bool Checkpoints::is_over() const { return checkpoint::is_over(state_->run, state_->node); }
bool Checkpoints::is_each_by_itself() const { return state_->patterns.are_single(); }

bool Checkpoints::shows_plain(const File& file) const {
  std::lock_guard lock(state_->mutex);
  return state_->plain.has(file.path) || state_->is_no_file(file.path);
}

// Of a file that is protected by itself: what cannot be read on the nodes, whether or not it is plain at its path. It may come back with its nodes.
std::optional<layout::Version> Checkpoints::State::newest_unread(const File& file) {
  const auto found = patterns.are_single() ? versions.look(settings.local, settings.deadline_ms) : Result<Found>(Found());
  std::optional<layout::Version> newest;
  if (!found) return newest;
  for (const catalog::FoundVersion& one : *found)
    if (const layout::Version& version = *one.manifest.version; version.run == run.id && version.file == file.path)
      if (!newest || number_of(*newest) < number_of(version)) newest = version;
  return newest;
}

// The newest of it here, or in the pool where that is newer. Nothing where the program does not see it.
Result<std::optional<LocalName>> Checkpoints::State::last_seen(const File& file) {
  const auto here = files.newest(file.path);
  std::optional<LocalName> last = here ? std::optional(here->name) : std::nullopt;
  const auto hidden = here ? std::nullopt : files.hidden_number(file.path);
  if ((here && !may_be_outdated(file, *here)) || (hidden && is_told_here(file))) return last;
  const int64_t removed = hidden ? int64_t(*hidden) : -1;
  const auto found = in_pool(file);
  if (!here && !(found && *found))
    if (const auto unread = newest_unread(file); unread && number_here(*unread) > removed)
      return std::optional(LocalName{unread->step, unread->rank, unread->ranks, number_here(*unread), file.path});
  if (!found) return here || hidden ? Result<std::optional<LocalName>>(last) : found.status();
  if (!*found || number_here(*(*found)->version) <= removed) return last;
  const layout::Version& version = *(*found)->version;
  if (!last || last->number < number_here(version)) last = LocalName{version.step, version.rank, version.ranks, number_here(version), file.path};
  return last;
}

// What ranks write together any of them may remove, for all nodes. So may one rank what another one has written.
Status Checkpoints::State::hide(const File& file, LocalName name) {
  if (name.writers == 0) name.writers = writers();  // else it would look as if it were of no checkpoint
  HF_TRY(files.hide(name));
  if (!is_of_all(file) && !is_anothers(file)) return {};
  const auto text = checkpoint::encode(name);
  return text ? put_on_all(checkpoint::State::hidden, *text) : Status();
}

// An empty note in the directories of all other nodes that answer.
Status Checkpoints::State::put_on_all(checkpoint::State state, const std::string& name) {
  const auto pool = catalog::look_at_pool(settings.local, settings.deadline_ms);
  if (!pool) return {};
  const std::string at = files.on_its_node(state, name);
  for (const catalog::Member& member : pool->members)
    if (member.usable() && member.path != node)
      (void)member.lane->run([target = member.target, at] {
        const Status put = target->put(at, {}, false);
        if (put.kind() != Kind::not_found) return put;
        (void)target->make_directory(catalog::parent_of(at));
        return target->put(at, {}, false);
      });
  return {};
}

}  // namespace holdfast::frontend::posix
