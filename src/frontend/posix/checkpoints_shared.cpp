// Files of checkpoints that processes of several nodes write, each by an open of its own (checkpoint/shared.hpp).
#include <fcntl.h>

#include <algorithm>

#include "base/node_path.hpp"
#include "base/raw_syscalls.hpp"
#include "catalog/environment.hpp"
#include "checkpoint/ahead.hpp"
#include "checkpoint/together.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "frontend/posix/checkpoints_state.hpp"
#include "target/lock_owner.hpp"

namespace holdfast::frontend::posix {

using checkpoint::SharedFile;
using checkpoint::SharedFiles;

std::atomic<int> shared_opens{0};

namespace {

constexpr size_t content_at_once = 4 << 20;

Status truncated_since(const std::string& file) {
  return Status(Kind::stale, file + ": another rank has truncated it since it was opened, and others had written to it: open it again", ESTALE);
}

mode_t mode_of_new(mode_t mode) { return mode & 0777 & ~target::umask_of_this_process(); }

}  // namespace

bool Checkpoints::State::any_shared() const {
  const auto& all = patterns.all();
  return std::any_of(all.begin(), all.end(), [](const checkpoint::Pattern& one) { return one.is_shared(); });
}

bool Checkpoints::grows(const File& file) const { return state_->patterns.are_shared(file.named.part); }

// Whoever has opened one to read and write, and has only read, has written to nothing. Who truncates it then begins a version: its place in the order is now and not at
// that look, and no rank has taken part in it yet. Else who has looked would begin another one, and the others would join the one that was looked at.
Status Checkpoints::State::begin_looked_at_anew(const File& file, std::vector<SharedFile>& found, const SharedFiles& all) {
  for (SharedFile& one : found) {
    if (!one.begun_as || !all.is_only_looked_at(one)) continue;
    const auto name = next_name_together(file, true);
    if (!name) return name.status();
    HF_TRY(checkpoint::encode(*name).status());
    HF_TRY(all.begin_anew(one, *name));
  }
  return {};
}

// As natively every open is of what the file is now: the ranks of one checkpoint meet in the last version. While nobody has written to it truncating it is nothing anew:
// programs make a file first, or look whether they may write it, or all ranks truncate it. Else a truncation begins another one. docs/decisions/0107
Result<const SharedFile*> Checkpoints::State::one_to_join(const std::vector<SharedFile>& found, int flags, const SharedFiles& all) const {
  if (found.empty()) return nullptr;
  const SharedFile* const last = &found.back();
  if (!(flags & O_TRUNC)) return last;
  if (parts.has_written(last->name, rank)) return nullptr;
  const auto written = all.who_has_written(*last, rank);
  if (!written.still_on.empty())
    return Status(
        Kind::busy,
        fmt::format("{}: a rank on {} has written to it, and has it open: to truncate it now would take that from it; let all ranks open it "
                    "before one of them writes (a barrier in between), or truncate it by one rank alone",
                    last->name.file, parse_node_path(written.still_on).node),
        EBUSY);
  return written.by_any ? nullptr : last;
}

// Nobody else opens it meanwhile. `written`: the last version, which is being written; this one is not to begin with what that holds.
Result<SharedFile> Checkpoints::State::make_shared(const File& file, const SharedFile* written, int flags, mode_t mode, const SharedFiles& all) {
  auto sight = written ? Result<Sight>(Sight{Sight::absent, ""}) : look_locked(file);
  if (!sight) return sight.status();
  const auto before =
      sight->what == Sight::absent ? Status(Kind::not_found, "") : catalog::look(sight->what == Sight::local ? sight->path : file.path, true);
  const bool there = written || before.ok();
  if (there && (flags & O_CREAT) && (flags & O_EXCL)) return Status(Kind::exists, "", EEXIST);
  if (!there && !(flags & O_CREAT)) return Status(Kind::not_found, "", ENOENT);
  const bool copies = before.ok() && !(flags & O_TRUNC);
  auto name = next_name_together(file, !copies);
  if (!name) return name.status();
  HF_TRY(checkpoint::encode(*name).status());
  const auto last = copies ? open_seen(file, *sight) : Result<catalog::Descriptor>(catalog::Descriptor());
  if (!last) return last.status();
  (void)catalog::make_with_parents(catalog::parent_of(file.path));
  const mode_t mode_now = written ? written->manifest.mode : before.ok() ? before->mode & 0777 : mode_of_new(mode);
  auto located = checkpoint::make_shared_file(name->version_in(run), run, mode_now, settings);
  if (!located) return located.status();
  SharedFile one{std::move(*name), ranks, patterns.stem(file.path), located->manifest};
  Status begun;
  if (copies) {
    begun = checkpoint::begin_with(*located, last->get(), file.path, settings);
    const auto as = begun ? checkpoint::generation_of(*located, settings) : Result<uint64_t>(begun);
    if (as) one.begun_as = *as;  // else it is a version, whoever writes to it
  }
  if (begun) begun = all.add(one);
  if (begun) return one;
  checkpoint::give_up(*located);
  return begun;
}

// Who writes says so before anybody may look whether somebody does. What it begins to write as a copy is noted at its first write.
Status Checkpoints::State::take_part(const Shared& shared, int flags, By by) {
  const LocalName& name = shared.name;
  const bool may_only_read = shared.may_stay_so && (flags & O_ACCMODE) == O_RDWR && !(flags & O_TRUNC);
  const bool is_noted = !shared.may_stay_so || (flags & O_TRUNC);
  HF_TRY(files.opened(name, who()));
  const bool is_first = !parts.has_taken(name, rank);
  if (const Status taken = may_only_read ? parts.take(name, rank, false)
                           : is_noted    ? writes_shared(name, is_first)
                                         : begins_shared(name, is_first);
      !taken)
    return files.no_longer(name, who()), taken;
  OpenShared& one = open_shared[shared.manifest.file_id];
  if (one.process != ::getpid()) one = {.name = name, .process = ::getpid(), .only_reads = true};
  goes_by(one, name);
  one.only_reads &= may_only_read, one.is_noted |= is_noted;
  ++one.times, ++shared_opens, one.handles += by == By::handle;
  return {};
}

// Who reads of one checkpoint is not done with the others.
Status Checkpoints::State::writes_shared(const LocalName& name, bool is_first) {
  HF_TRY(note_together(name));
  return begins_shared(name, is_first);
}

Status Checkpoints::State::begins_shared(const LocalName& name, bool is_first) {
  if (is_first) begins(name.step);
  return parts.take(name, rank, !patterns.have_completing());
}

void Checkpoints::State::goes_by(OpenShared& one, const LocalName& name) {
  if (one.name == name) return;
  files.no_longer(one.name, who());
  one.name = name, one.is_noted = one.has_written = false;
}

// Its generation would not tell of what a handle writes.
Status Checkpoints::State::no_longer_looked_at(SharedFile& one, By by, bool anew, const SharedFiles& all) {
  if (!one.begun_as) return {};
  const auto named = anew && all.is_unwritten(one) ? patterns.match(one.name.file) : std::nullopt;
  if (!named) return by == By::handle ? all.is_no_copy(one) : Status();
  const auto name = next_name_together(File{*named, one.name.file}, true);
  if (!name) return name.status();
  HF_TRY(checkpoint::encode(*name).status());
  return all.begin_anew(one, *name, true);
}

// In a turn, and by the name that it has now: who truncates it while it was only looked at gives it another one.
Result<LocalName> Checkpoints::State::begins_to_write(const Shared& shared, bool is_known, By by, bool anew) {
  auto all = SharedFiles::look(run, settings);
  if (!all) return all.status();
  HF_TRY(all->take_turn(shared.name.file));
  auto found = all->find(shared.name.file);
  if (!found) return found.status();
  const auto is_it = [&](const SharedFile& one) { return one.manifest.file_id == shared.manifest.file_id; };
  const auto one = std::find_if(found->begin(), found->end(), is_it);
  if (one == found->end()) {  // a version is refused by the engine, and what a program has removed it may write to
    if (files.hidden_number(shared.name.file).value_or(0) >= shared.name.number) return shared.name;
    return Status(Kind::stale, shared.name.file + ": has become a version, or was given up or renamed, since it was opened: open it again", ESTALE);
  }
  if (!one->is_last) return truncated_since(shared.name.file);
  HF_TRY(no_longer_looked_at(*one, by, anew, *all));
  HF_TRY(writes_shared(one->name, true));
  if (is_known) HF_TRY(files.opened(one->name, who()));
  return one->name;
}

// Before a rank's first write to what it has opened to write.
Status Checkpoints::State::check_is_last(const Shared& shared) const {
  const auto all = SharedFiles::look(run, settings);
  const auto found = all ? all->find(shared.name.file) : Result<std::vector<SharedFile>>(all.status());
  if (!found) return found.status();
  const auto is_it = [&](const SharedFile& one) { return one.manifest.file_id == shared.manifest.file_id; };
  const auto one = std::find_if(found->begin(), found->end(), is_it);
  return one == found->end() || one->is_last ? Status() : truncated_since(shared.name.file);
}

// A child, or an image after an exec, is not known: what its rank has said holds for it.
Result<LocalName> Checkpoints::shared_written(const Shared& shared, By by, bool anew) {
  std::lock_guard lock(state_->mutex);
  const auto found = state_->open_shared.find(shared.manifest.file_id);
  State::OpenShared* const known = found != state_->open_shared.end() && found->second.process == ::getpid() ? &found->second : nullptr;
  if (known && known->has_written) return known->name;
  const bool is_noted = known ? known->is_noted : !shared.may_stay_so && state_->parts.has_taken(shared.name, state_->rank);
  if (is_noted) HF_TRY(state_->check_is_last(shared));
  auto name = is_noted ? Result<LocalName>(known ? known->name : shared.name) : state_->begins_to_write(shared, known, by, anew);
  if (!name) return name;
  state_->parts.writes(*name, state_->rank);
  if (known) state_->goes_by(*known, *name), known->only_reads = false, known->is_noted = known->has_written = true;
  return name;
}

Result<Checkpoints::Shared> Checkpoints::State::open_shared_now(const File& file, int flags, mode_t mode, By by) {
  auto all = SharedFiles::look(run, settings);
  if (!all) return all.status();
  HF_TRY(all->take_turn(file.path));
  auto found = all->find(file.path);
  if (!found) return found.status();
  // Who comes back to what all have gone on from, as to a slot, begins another version, also where no protector has come to it yet.
  const auto is_left = [&](const SharedFile& one) {
    return parts.has_written(one.name, rank) && !all->is_untouched(one) && all->is_complete(one, false).ok();
  };
  if (!found->empty() && (found->back().is_sealed || is_left(found->back()))) {
    HF_TRY(all->seal(found->back()).status());
    all->settle_older_than(found->back(), *found);
    found->clear();
  }
  for (const SharedFile& one : *found)
    if (one.is_sealed) HF_TRY(all->seal(one).status());
  std::erase_if(*found, [](const SharedFile& one) { return one.is_sealed; });
  if (!found->empty() && (flags & O_CREAT) && (flags & O_EXCL)) return Status(Kind::exists, "", EEXIST);
  if (flags & O_TRUNC) HF_TRY(begin_looked_at_anew(file, *found, *all));
  const auto there = one_to_join(*found, flags, *all);
  if (!there) return there.status();
  if (!*there && found->size() > 1) all->forget_older_than(found->back(), *found);
  const auto one = *there ? Result<SharedFile>(**there) : make_shared(file, found->empty() ? nullptr : &found->back(), flags, mode, *all);
  if (!one) return one.status();
  Shared shared{one->name, one->manifest, one->begun_as.has_value()};
  const Status taken = take_part(shared, flags, by);
  if (taken) return shared;
  if (!*there) all->forget(*one), checkpoint::give_up(checkpoint::locate_shared(one->manifest, settings));
  return taken;
}

Result<Checkpoints::Shared> Checkpoints::open_shared(const File& file, int flags, mode_t mode, By by) {
  if (!checkpoint::are_ranks_said())
    return Status(Kind::invalid,
                  "the launcher does not give the number of ranks, which a file that all of them write needs; set PMI_SIZE to that "
                  "number for each rank",
                  EINVAL);
  HF_TRY(state_->wait_to_see(file));  // a plain file may have got its name on another node
  std::lock_guard lock(state_->mutex);
  HF_TRY(state_->files.make());
  state_->note_opened(file);
  auto shared = state_->open_shared_now(file, flags, mode, by);
  // A node may have been lost meanwhile: whoever looks again does without it. So many losses the scheme bears.
  const auto scheme = layout::Scheme::parse(state_->settings.protect.value_or(""));
  for (int lost = 0; scheme && lost < scheme->m && (shared.status().kind() == Kind::io || shared.status().kind() == Kind::timed_out); ++lost)
    shared = state_->open_shared_now(file, flags, mode, by);
  return shared;
}

// It cannot become a version while the one who tells of it has it open. Who truncates it in between gives it another name, and this rank is heard of under that
// one when it writes.
Status Checkpoints::join_shared(const File& file, const Shared& there, int flags) {
  std::lock_guard lock(state_->mutex);
  HF_TRY(state_->files.make());
  state_->note_opened(file);
  return state_->take_part(there, flags, By::handle);
}

Status Checkpoints::handle_opened(const Shared& shared) {
  if (!shared.may_stay_so) return {};
  std::lock_guard lock(state_->mutex);
  auto all = SharedFiles::look(state_->run, state_->settings);
  if (!all) return all.status();
  HF_TRY(all->take_turn(shared.name.file));
  const auto found = all->find(shared.name.file);
  if (!found) return found.status();
  const auto is_it = [&](const SharedFile& one) { return one.manifest.file_id == shared.manifest.file_id; };
  const auto one = std::find_if(found->begin(), found->end(), is_it);
  if (one == found->end() || !one->begun_as || all->is_noted(*one, true)) return {};
  SharedFile now = *one;
  (void)all->opened_and_not_written(now);  // else it counts as written
  return {};
}

Result<std::optional<Checkpoints::Shared>> Checkpoints::find_shared(const File& file, const std::string& file_id) {
  if (!grows(file)) return std::optional<Shared>();
  const auto all = SharedFiles::look(state_->run, state_->settings);
  const auto found = all ? all->find(file.path) : Result<std::vector<SharedFile>>(all.status());
  if (!found) return found.status();
  const auto is_meant = [&](const SharedFile& one) { return file_id.empty() ? !all->is_untouched(one) : one.manifest.file_id == file_id; };
  const auto one = std::find_if(found->rbegin(), found->rend(), is_meant);
  return one == found->rend() ? std::optional<Shared>() : std::optional(Shared{one->name, one->manifest, one->begun_as.has_value()});
}

// Whether there was one that is being written. What has it open keeps it.
Result<bool> Checkpoints::State::remove_shared(const File& file) {
  if (!patterns.are_shared(file.named.part)) return false;
  auto all = SharedFiles::look(run, settings);
  if (!all) return all.status();
  HF_TRY(all->take_turn(file.path));
  const auto found = all->find(file.path);
  if (!found) return found.status();
  if (found->empty()) return false;
  HF_TRY(files.make());
  HF_TRY(hide(file, found->back().name));
  forget_shared(*all, *found);
  return true;
}

// What all have gone on from becomes a version all the same: it serves until a newer checkpoint is whole.
void Checkpoints::State::forget_shared(const SharedFiles& all, const std::vector<SharedFile>& files_now) const {
  for (const SharedFile& one : files_now) {
    if (!all.is_untouched(one) && (one.is_sealed || all.is_complete(one, false)) && all.seal(one)) continue;
    const bool is_closed = all.is_complete(one, true).ok();
    all.forget(one);
    if (is_closed) checkpoint::give_up(checkpoint::locate_shared(one.manifest, settings));
  }
}

// What stands there goes when the other one has its name.
Status Checkpoints::State::take_over_shared(const std::string& plain, const File& to) {
  auto all = SharedFiles::look(run, settings);
  if (!all) return all.status();
  HF_TRY(all->take_turn(to.path));
  const auto found = all->find(to.path);
  if (!found) return found.status();
  HF_TRY(take_here(plain, to));
  forget_shared(*all, *found);
  return {};
}

namespace {

// Of a file that is being written, and nobody has it open: what is to be renamed.
Result<std::optional<SharedFile>> closed_by_all(const SharedFiles& all, const std::string& path) {
  auto found = all.find(path);
  if (!found) return found.status();
  if (!found->empty() && found->back().is_sealed) {
    HF_TRY(all.seal(found->back()).status());
    all.settle_older_than(found->back(), *found);
    return std::optional<SharedFile>();
  }
  for (const SharedFile& one : *found)
    if (one.is_sealed) HF_TRY(all.seal(one).status());
  std::erase_if(*found, [](const SharedFile& one) { return one.is_sealed; });
  std::erase_if(*found, [&](const SharedFile& one) { return all.is_untouched(one) && all.is_complete(one, true) && (all.forget(one), true); });
  if (found->empty()) return std::optional<SharedFile>();
  const Status closed = all.is_complete(found->back(), true);
  if (closed.kind() == Kind::busy)
    return Status(Kind::busy, "a rank still has it open to write; let all ranks close it before one renames it", EBUSY);
  if (!closed) return closed;
  return std::optional(found->back());
}

// Both turns in the order of the paths, as two ranks may rename in both directions.
Status take_turns(SharedFiles& first, const std::string& path, SharedFiles* second, const std::string& other) {
  if (second && other < path) HF_TRY(second->take_turn(other));
  HF_TRY(first.take_turn(path));
  return second && path < other ? second->take_turn(other) : Status();
}

}  // namespace

Result<bool> Checkpoints::rename_shared(const File& from, const File& to) {
  if (!grows(from)) return false;
  std::lock_guard lock(state_->mutex);
  HF_TRY(state_->files.make());
  auto all = SharedFiles::look(state_->run, state_->settings), of_goal = SharedFiles::look(state_->run, state_->settings);
  if (!all || !of_goal) return all ? of_goal.status() : all.status();
  HF_TRY(take_turns(*all, from.path, grows(to) ? &*of_goal : nullptr, to.path));
  const auto one = closed_by_all(*all, from.path);
  if (!one || !*one) return one ? Result<bool>(false) : one.status();
  if (state_->patterns.have_rank(to.named.part)) {  // of one rank, with a copy on its node: as any rename of a version
    HF_TRY(all->seal(**one).status());
    return false;
  }
  const auto replaced = grows(to) ? of_goal->find(to.path) : Result<std::vector<SharedFile>>(std::vector<SharedFile>());
  if (!replaced) return replaced.status();
  const Status closed = replaced->empty() || replaced->back().is_sealed ? Status() : of_goal->is_complete(replaced->back(), true);
  if (closed.kind() == Kind::busy)
    return Status(Kind::busy, "a rank has a file of that name open to write; let all ranks close it before the rename", EBUSY);
  if (!closed) return closed;
  const auto name = state_->next_name_in_pool(to, true);
  if (!name) return name.status();
  HF_TRY(checkpoint::encode(*name).status());
  const auto before = state_->last_seen(from);  // an older version of the old name would be there again
  state_->begins(name->step);
  const std::string stem = state_->patterns.stem(to.path);
  HF_TRY(grows(to) ? all->rename(**one, *name, stem, *of_goal) : all->seal_as(**one, *name, stem).status());
  state_->forget_shared(*of_goal, *replaced);
  if (before && *before) (void)state_->hide(from, (*one)->name);
  state_->files.forget_hidden(to.path, name->number);
  if (!grows(to)) state_->completed_together.push_back(*name);
  return true;
}

// Nobody has it open any more: it goes, and nobody has seen it.
void Checkpoints::State::give_up_untouched(const LocalName& name) const {
  auto all = SharedFiles::look(run, settings);
  if (!all || !all->take_turn(name.file)) return;
  const auto found = all->find(name.file);
  if (!found) return;
  for (const SharedFile& one : *found) {
    if (one.name.number != name.number || !all->is_complete(one, true) || !all->is_untouched(one)) continue;
    all->forget(one);
    checkpoint::give_up(checkpoint::locate_shared(one.manifest, settings));
  }
}

void Checkpoints::shared_closed(const Shared& shared, bool arrived, bool last, bool alone) {
  std::lock_guard lock(state_->mutex);
  const auto found = state_->open_shared.find(shared.manifest.file_id);
  const bool is_known = found != state_->open_shared.end() && found->second.process == ::getpid();
  const LocalName name = is_known ? found->second.name : shared.name;
  bool failed = !arrived;
  bool only_read = false;
  if (is_known) {
    State::OpenShared& one = found->second;
    if (one.times > 0) --one.times, --shared_opens;
    failed = one.failed |= failed;
    last = one.times == 0;
    only_read = one.only_reads;
  }
  if (!last || failed) return;  // what has not arrived is nobody's: the file is torn
  if (is_known) state_->open_shared.erase(found);
  state_->parts.closes(name, state_->rank);
  state_->files.no_longer(name, state_->who());
  if (only_read && alone) state_->give_up_untouched(name);
}

void Checkpoints::handle_closed(const Shared& shared, bool arrived) {
  {
    std::lock_guard lock(state_->mutex);
    const auto found = state_->open_shared.find(shared.manifest.file_id);
    if (found != state_->open_shared.end() && found->second.handles > 0) --found->second.handles;
  }
  shared_closed(shared, arrived, true);
}

void Checkpoints::shared_ended() {
  std::lock_guard lock(state_->mutex);
  for (const auto& [id, one] : state_->open_shared)
    if (one.process == ::getpid() && !one.failed && one.handles == 0)
      state_->parts.closes(one.name, state_->rank), state_->files.no_longer(one.name, state_->who());
}

Result<uint64_t> Checkpoints::State::size_of(const Shared& shared) const {
  const auto alone = exchange::make_solo();
  const auto file = engine::ProtectedFile::open(checkpoint::locate_shared(shared.manifest, settings), {}, settings, *alone);
  return file ? (*file)->size() : Result<uint64_t>(file.status());
}

Result<Checkpoints::Sight> Checkpoints::stand_in_for(const Shared& shared, uint64_t bytes) {
  std::lock_guard lock(state_->mutex);
  HF_TRY(state_->files.make());
  // One of each size: other processes of the node see the file as long as they know it.
  const std::string at = fmt::format("{}/{}{}.{}", state_->files.directory(), checkpoint::seen_begins, shared.manifest.file_id, bytes);
  const Sight sight{Sight::local, at, shared.manifest.file_id, bytes};
  if (catalog::look(at, false)) return sight;
  HF_TRY(checkpoint::make_hollow(state_->files, at, bytes, shared.manifest.mode));
  return sight;
}

Result<std::string> Checkpoints::content_of(const Shared& shared) {
  HF_TRY(state_->files.make());
  const auto alone = exchange::make_solo();
  const auto file = engine::ProtectedFile::open(checkpoint::locate_shared(shared.manifest, state_->settings), {}, state_->settings, *alone);
  if (!file) return file.status();
  const std::string at = state_->files.scratch();
  const catalog::Descriptor made(checkpoint::open_for_program(at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!made) return Status::from_errno(errno, at);
  Bytes piece(content_at_once);
  for (uint64_t offset = 0;;) {
    const Extent extent{offset, piece.size()};
    const auto got = (*file)->read({&extent, 1}, piece);
    Status put = got ? catalog::write_at(made.get(), at, offset, ByteView(piece).first(*got)) : got.status();
    if (!put) return (void)catalog::unlink_file(at), put;
    if (*got < piece.size()) return at;
    offset += *got;
  }
}

}  // namespace holdfast::frontend::posix
