// What the program does, by the calls of the front end, and what it may read.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/node_path.hpp"
#include "catalog/user_files.hpp"
#include "coding/xxh3.hpp"
#include "sim/checkpoints_world.hpp"

namespace holdfast::sim {

using checkpoint::LocalName;
using checkpoint::State;

namespace {

// A copy, piece by piece, to where a descriptor stands.
bool write_bytes(int fd, const Bytes& bytes, size_t pieces) {
  const size_t piece = bytes.size() / pieces + 1;
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t put = catalog::environment().write(fd, bytes.data() + at, std::min(piece, bytes.size() - at));
    if (put <= 0) return false;
    at += size_t(put);
  }
  return true;
}

}  // namespace

std::vector<std::string> CheckpointsWorld::paths_of(uint32_t rank, uint64_t step) const {
  switch (naming_) {
    case Naming::step_and_rank:
    case Naming::slots: return {fmt::format("{}/ck.{}.{}", directory_of_all, step, rank)};
    case Naming::step:
      // Of two nodes nobody can say which wrote first: the step does, where it grows.
      return (counts_down_ ? 0 : step / 10 % ranks_) == rank ? std::vector<std::string>{fmt::format("{}/one.{}", directory_of_all, step)}
                                                             : std::vector<std::string>();
    case Naming::counted: return {fmt::format("{}/restart.{}", directory_of_all, rank)};
    case Naming::two_patterns: break;
    case Naming::singles: return {};
    case Naming::shared:
    case Naming::shared_slots:
    case Naming::together:
    case Naming::together_slots: return {fmt::format("{}/all.{}", directory_of_all, step)};
    case Naming::many:
    case Naming::many_slots: {
      std::vector<std::string> all;
      for (uint64_t i = 0; i <= (step / 10 + step + rank) % 3; ++i) all.push_back(fmt::format("{}/{}.{}.{}", directory_of_all, step, "abc"[i], rank));
      return all;
    }
  }
  std::vector<std::string> both = {fmt::format("{}/ck.{}.{}", directory_of_all, step, rank)};
  if (rank == 0) both.push_back(fmt::format("{}/head.{}", directory_of_all, step));
  return both;
}

void CheckpointsWorld::write_all_of(RankOf& rank, uint64_t round, uint64_t step) {
  if (may_remove() && one_in(5)) remove_one(rank);
  for (const std::string& path : paths_of(rank.number, step)) {
    if (is_shared()     ? !write_shared(rank, path, round, step)
        : is_together() ? !write_together(rank, path, round, step)
                        : !write_one(rank, path, round, step))
      return;
    rank.paths.insert(path);
    if (updates_ && !is_of_all() && !update_one(rank, path)) return;
  }
  if (may_remove() && one_in(5)) remove_one(rank);
  if (!is_shared() && !is_together() && !Schedule::dead()) read_again(rank, round);
  if (!Schedule::dead()) look_for_removed(rank);
  rank.ended_well = !Schedule::dead();
}

// What it has written itself, some rounds ago: that, or nothing where it gave way, and never what was there before.
void CheckpointsWorld::read_again(RankOf& rank, uint64_t round) {
  if (rank.paths.empty()) return;
  const std::string& path = *std::next(rank.paths.begin(), long(round % rank.paths.size()));
  const CheckpointsModel::Write* const last = model_.last_of(attempts_.size(), path);
  if (!last || last->rank != rank.number || !last->complete) return;
  const auto file = rank.front->match(path);
  const auto sight = file ? rank.front->look(*file) : Result<Front::Sight>(Status(Kind::io, "no match"));
  if (Schedule::dead() || !sight || sight->what == Front::Sight::absent) return;
  const auto bytes = bytes_at(sight->what == Front::Sight::local ? sight->path : path);
  if (Schedule::dead() || !bytes) return;
  const CheckpointsModel::Write* const write = model_.who_wrote(*bytes);
  if (write != last)
    found(fmt::format("{} was written as number {}, and reads as {}", path, last->number,
                      write ? std::to_string(write->number) : model_.likeness(*bytes)));
  count(Did::files_read_again);
}

// Programs remove what they think they need no more, and sometimes what they are about to write anew. It is gone from then on for this program, in
// whatever state it is.
void CheckpointsWorld::remove_one(RankOf& rank) {
  if (rank.paths.empty()) return;
  const std::string path = *std::next(rank.paths.begin(), long(random(rank.paths.size())));
  const auto file = rank.front->match(path);
  if (!file) return;
  gone_.erase(path);    // what was written since an earlier removal is there until it is done
  model_.remove(path);  // also where the call fails: some node may have the note
  const Status gone = rank.front->remove(*file);
  if (gone.kind() == Kind::not_found && rank.front->shows_plain(*file)) (void)catalog::unlink_file(path);  // as the doors do
  if (Schedule::dead()) return;
  if (!gone && gone.kind() != Kind::not_found) {  // not found: it was dropped
    if (all_well()) found(fmt::format("{} cannot be removed: {}", path, gone.sentence()));
    return;
  }
  rank.paths.erase(path);
  removed_.insert({run_.attempt, path});
  if (gone.ok()) gone_[path] = rank.number;
  note(fmt::format("rank {} removes {}", rank.number, path));
  count(Did::removals, gone.ok());
  const auto sight = rank.front->look(*file);
  const auto listing = rank.front->list(directory_of_all);
  if (Schedule::dead() || !is_up(rank.node)) return;  // where its disk fails nothing remembers it
  if (!gone && !all_well()) return;                   // it was dropped before: nothing was removed, and a node that was away may bring it back
  // What a rank removes is what it sees. What another one writes meanwhile comes after that, and shows when it is closed, or protected.
  if (model_.is_of_another(attempts_.size(), path, rank.number)) return;
  if (sight && sight->what != Front::Sight::absent && sight->what != Front::Sight::as_without) found(path + " was removed and is to be seen");
  if (listing && *listing && (*listing)->names.contains(catalog::name_of(path))) found(path + " was removed and is listed");
}

// What another rank has removed and not begun anew. Where links are cut it may be that nobody who answers knows of it.
void CheckpointsWorld::look_for_removed(RankOf& rank) {
  const auto last_write = [this](const std::string& path) { return model_.last_of(attempts_.size(), path); };
  const auto is_gone = [&](const std::string& path) {
    const CheckpointsModel::Write* const last = last_write(path);
    return calm_ && all_well() && (!last || model_.is_removed(*last));
  };
  std::vector<std::string> gone;
  for (const auto& [path, who] : gone_)
    if (who != rank.number && is_gone(path)) gone.push_back(path);
  if (gone.empty()) return;
  const std::string path = gone[random(gone.size())];
  const CheckpointsModel::Write* const last = last_write(path);
  const auto sight = rank.front->look(*rank.front->match(path));
  const auto listing = rank.front->list(directory_of_all);
  if (Schedule::dead() || last_write(path) != last || !is_gone(path)) return;
  count(Did::looks_for_removed);
  if (sight && sight->what == Front::Sight::local)
    found(fmt::format("{} was removed by another rank and is to be seen by rank {}, as {}", path, rank.number, sight->path));
  if (listing && *listing && (*listing)->names.contains(catalog::name_of(path))) found(path + " was removed by another rank and is listed");
}

bool CheckpointsWorld::write_one(RankOf& rank, const std::string& path, uint64_t round, uint64_t step) {
  constexpr size_t sizes[] = {8, 100, 4096, 5000, 9001, 20000};
  const uint64_t number = model_.begin_write({attempts_.size(), round}, step, path, rank.number, any_size(sizes), random_);
  const auto file = rank.front->match(path);
  if (Schedule::dead()) return false;
  if (!file) return found(path + " is no checkpoint"), false;
  const bool moves = moves_ && !one_in(3), renames = !moves && one_in(4);
  const auto before = newest_name(rank.node, path);
  Status status;
  const bool done = moves     ? write_and_move(rank, *file, number, status)
                    : renames ? write_and_rename(rank, *file, number)
                              : write_in_place(rank, *file, number, status);
  const auto name = newest_name(rank.node, path);
  if (name && (!before || before->number < name->number)) model_.name(number, name_key(rank, *name));
  rank.last_write = number;
  if (done && naming_ == Naming::counted && name && name->step != step)
    found(fmt::format("{} is written for the {}th time and counted as {}", path, step, name->step));
  if (!done && !Schedule::dead() && all_well()) found(fmt::format("{} cannot be written: {}", path, status.sentence()));
  return done;
}

CheckpointsModel::Key CheckpointsWorld::name_key(const RankOf& rank, const LocalName& name) const {
  return CheckpointsModel::key_of(name.version_in(run_), catalog::digits_of_node(site_.disks[size_t(rank.node)].address));
}

// A program that does not look at what its writes answer. Holdfast has heard it.
bool CheckpointsWorld::closes_all_the_same(RankOf& rank, int fd) {
  if (Schedule::dead() || !one_in(2)) return false;
  rank.front->write_failed(fd, site_.disks[size_t(rank.node)].full ? ENOSPC : EIO);
  count(Did::files_closed_in_part);
  return true;
}

bool CheckpointsWorld::write_in_place(RankOf& rank, const Front::File& file, uint64_t number, Status& status) {
  const int fd = rank.front->open_to_write(file, O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
  if (fd < 0) return false;
  if (const auto name = newest_name(rank.node, file.path)) model_.name(number, name_key(rank, *name));  // before a protector finds it closed
  // The disk may have room for a half alone, and again for all a moment later.
  const Bytes& content = model_.write(number).content;
  const bool falls_short = !calm_ && coding::xxh3(content.data(), content.size(), 0) % 60 == 0;
  if (falls_short) ++faults_;
  const bool written = write_bytes(fd, falls_short ? Bytes(content.begin(), content.begin() + content.size() / 2) : content, 1 + random(3)) &&
                       !falls_short && !Schedule::dead();
  if (written) model_.write(number).complete = true;
  const bool given_up = !written && !closes_all_the_same(rank, fd);
  catalog::environment().close(fd);
  check_protected(rank, file.path, rank.front->closed(fd, given_up), !written);
  return written && !Schedule::dead();
}

// With `--protect-at close`: nothing is on its way any more when that returns, and in calm times it is protected.
// What was given up is gone, and what the attempt began with may be the newest again.
void CheckpointsWorld::check_protected(RankOf& rank, const std::string& path, const std::string& closed, bool given_up) {
  if (!settings_.protect_at_close || closed.empty()) return;
  const Status late = rank.front->protected_at_close(closed);
  if (Schedule::dead()) return;
  count(Did::closes_protected, late.ok());
  const checkpoint::LocalFiles files(parse_node_path(site_.disks[size_t(rank.node)].address).path, run_.id, run_.attempt);
  const auto name = files.newest(path);
  if (name && given_up && (name->state == State::restored || name->state == State::writing)) return;  // the latter: it could not be noted why
  if (name && late && name->state != State::kept && name->state != State::failed)
    found(fmt::format("the close of {} has returned, and it is {}", path, checkpoint::state_name(name->state)));
  if (calm_ && all_well() && !late) found(fmt::format("in calm times a close waits in vain: {}", late.sentence()));
}

// Opened again and written to: a new version, which begins as a copy of the last one, whatever state that is in by now.
bool CheckpointsWorld::update_one(RankOf& rank, const std::string& path) {
  const CheckpointsModel::Write& last = model_.write(rank.last_write);
  const std::pair<size_t, size_t> part{sizeof(uint64_t) + random(last.content.size()) / 2, 1 + random(5000)};
  const auto file = rank.front->match(path);
  if (!file || Schedule::dead()) return false;
  Status status;
  const int fd = rank.front->open_to_write(*file, one_in(2) ? O_RDWR : O_WRONLY | O_CREAT, 0644, status);
  if (fd < 0) {
    if (!Schedule::dead() && all_well()) found(fmt::format("{} cannot be updated: {}", path, status.sentence()));
    return false;
  }
  const uint64_t number = model_.begin_update(last, part, random_);
  if (const auto name = newest_name(rank.node, path)) model_.name(number, name_key(rank, *name));
  CheckpointsModel::Write& write = model_.write(number);
  if (!calm_ && one_in(20)) schedule_.kill_after(rank.process, int64_t(1 + random(6))), count(Did::ranks_killed), ++deaths_;  // while others go on
  const auto put = [&](size_t offset, size_t bytes) {
    return catalog::environment().pwrite(fd, write.content.data() + offset, bytes, offset) == ssize_t(bytes) && !Schedule::dead();
  };
  const bool written = put(0, sizeof number) && put(part.first, part.second);
  write.complete = written;
  const bool given_up = !written && !closes_all_the_same(rank, fd);
  catalog::environment().close(fd);
  check_protected(rank, path, rank.front->closed(fd, given_up), !written);
  if (!written && !Schedule::dead() && all_well()) found(path + " cannot be updated");
  rank.last_write = number;
  count(Did::files_updated, written);
  return written && !Schedule::dead();
}

bool CheckpointsWorld::write_and_rename(RankOf& rank, const Front::File& file, uint64_t number) {
  const std::string plain = fmt::format("{}/new.{}", directory_of_all, number);
  {
    const catalog::Descriptor fd(catalog::environment().openat(AT_FDCWD, plain.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644));
    if (!fd || !write_bytes(fd.get(), model_.write(number).content, 1) || Schedule::dead()) return false;
  }
  count(Did::files_renamed);
  model_.write(number).complete = true;
  const Status taken = rank.front->take(plain, file);
  if (taken) check_protected(rank, file.path, file.path);
  (void)catalog::unlink_file(plain);
  return taken.ok() && !Schedule::dead();
}

// The file is one of the checkpoint before it gets its name: it may be closed, on its way, or protected by then.
bool CheckpointsWorld::write_and_move(RankOf& rank, const Front::File& file, uint64_t number, Status& status) {
  std::string other = file.path;
  other.insert(other.rfind('.'), "-new");
  const auto source = rank.front->match(other);
  if (!source) return found(other + " is no checkpoint"), false;
  if (!write_in_place(rank, *source, number, status)) return false;
  for (uint64_t turns = random(3) * random(60); turns > 0; --turns) Schedule::yield(true);
  for (Status taken(Kind::not_found, ""); !taken;) {  // it may have gone on to its next state
    if (Schedule::dead()) return false;
    const auto seen = rank.front->look(*source);
    if (Schedule::dead()) return false;
    if (!seen || seen->what != Front::Sight::local) return status = seen ? Status(Kind::not_found, other) : seen.status(), false;
    taken = rank.front->take(seen->path, file);
    if (!taken && taken.kind() != Kind::not_found) return status = taken, false;
  }
  check_protected(rank, file.path, file.path);
  if (Schedule::dead()) return false;
  status = rank.front->remove(*source);
  count(Did::files_moved, status.ok());
  return status.ok() && !Schedule::dead();
}

// --- what it reads

std::optional<Bytes> CheckpointsWorld::bytes_at(const std::string& path) {
  const catalog::Descriptor file(catalog::environment().openat(AT_FDCWD, path.c_str(), O_RDONLY, 0));
  const auto state = catalog::look(path, true);
  if (!file || !state) return {};
  Bytes bytes(state->size);
  const ssize_t got = catalog::environment().pread(file.get(), bytes.data(), bytes.size(), 0);
  return got == ssize_t(bytes.size()) ? std::optional(std::move(bytes)) : std::nullopt;
}

void CheckpointsWorld::read_beginning(RankOf& rank) {
  if (rank.number == 0) check_listing(rank);
  for (size_t i = rank.number; i < from_files_.size() && !failed(); i += ranks_)
    if (!check_read(rank, from_files_[i])) return;
  rank.ended_well = !Schedule::dead();
}

// What the attempt has begun with, and nothing else.
void CheckpointsWorld::check_listing(RankOf& rank) {
  const auto listing = rank.front->list(directory_of_all);
  if (Schedule::dead() || !listing || !all_well()) return;
  std::set<std::string> expected;
  for (const std::string& path : from_files_) expected.insert(catalog::name_of(path));
  if (!*listing) return;
  // And what stands there natively, where it is of a drained one.
  std::set<std::string> seen = (*listing)->names;
  for (const auto& [name, node] : site_.tree.below(*site_.tree.root(), directory_of_all + 1)->entries)
    if (run_.from && rank.front->match(fmt::format("{}/{}", directory_of_all, name)) && !rank.front->hides(**listing, name)) seen.insert(name);
  if (seen != expected)
    found(fmt::format("attempt {} lists {}, and has begun with {}", text_of(run_.attempt), fmt::join(seen, ", "), fmt::join(expected, ", ")));
}

// By an open to read and write, as Fortran's are, which leaves nothing.
std::optional<Bytes> CheckpointsWorld::bytes_to_update(RankOf& rank, const Front::File& file, Status& status) {
  const int fd = rank.front->open_to_write(file, O_RDWR, 0, status);
  if (fd < 0) return {};
  struct stat state;
  std::optional<Bytes> bytes;
  if (catalog::environment().fstat(fd, &state) == 0) bytes.emplace(size_t(state.st_size));
  if (bytes && catalog::environment().pread(fd, bytes->data(), bytes->size(), 0) != state.st_size) bytes.reset();
  catalog::environment().close(fd);
  (void)rank.front->closed(fd);
  return bytes;
}

// The same start shows how often its ranks close each file. Not where they have removed some: what was protected of these may be of before the last close.
bool CheckpointsWorld::may_be_written_in_part(const CheckpointsModel::Write& write) const {
  if (updating_ != Updating::always || is_of_all() || is_rolled() || run_.from->drained) return false;
  if (!expected_ || expected_->first != write.round.first || !(*expected_ < write.round)) return false;
  const layout::Attempt& attempt = attempts_[write.round.first - 1];
  if (std::any_of(removed_.begin(), removed_.end(), [&](const auto& one) { return one.first == attempt; })) return false;
  return model_.times_closed(write.round, write.rank, write.number) < model_.times_closed(*expected_, write.rank);
}

// False where it is refused, as it may be.
bool CheckpointsWorld::check_read(RankOf& rank, const std::string& path) {
  const auto file = rank.front->match(path);
  const auto sight = file ? rank.front->look(*file) : Result<Front::Sight>(Status(Kind::io, "no match"));
  if (Schedule::dead()) return false;
  const bool is_there = sight && sight->what != Front::Sight::absent, may_write = is_there && file->named.rank < ranks_ && one_in(3);
  const bool of_all = is_shared() || (is_together() && one_in(2));
  Status refused;
  const auto bytes = may_write  ? of_all ? bytes_to_update_of_all(rank, *file, refused) : bytes_to_update(rank, *file, refused)
                      : is_there ? bytes_at(sight->what == Front::Sight::local ? sight->path : path)
                                : std::nullopt;
  if (Schedule::dead()) return false;
  if (!bytes) {
    count(Did::reads_refused);
    if (all_well() && (!expected_ || !run_.from || calm_))
      found(fmt::format("{} is of what attempt {} begins with, and cannot be read: {}", path, text_of(run_.attempt),
                        !sight                                ? sight.status().sentence()
                        : sight->what == Front::Sight::absent ? "it is absent"
                        : !refused                            ? refused.sentence()
                                                              : sight->path + " is not there"));
    return false;
  }
  const CheckpointsModel::Write* const write = model_.who_wrote(*bytes);
  if (!write) return found(fmt::format("{} has bytes that nobody has written: {}", path, model_.likeness(*bytes))), false;
  if (write->path != path) return found(fmt::format("{} has the bytes of {}", path, write->path)), false;
  if (attempts_[write->round.first - 1] != run_.from->attempt || write->step != run_.from->step)
    return found(fmt::format("{} is of step {} of attempt {}, and attempt {} begins with step {} of attempt {}", path, write->step,
                             write->round.first, text_of(run_.attempt), run_.from->step, text_of(run_.from->attempt))),
           false;
  if (begun_round_ && *begun_round_ != write->round)
    return found(fmt::format("{} is of round {} of start {}, other files are of round {} of start {}", path, write->round.second, write->round.first,
                             begun_round_->second, begun_round_->first)),
           false;
  const auto promised = model_.promised.find(write->round);
  if (expected_ == write->round && promised != model_.promised.end() && !run_.from->drained &&
      model_.last_promised(promised->second, *write) > write->number)
    return found(fmt::format("{} is as it was before an update that was whole", path)), false;
  if (may_be_written_in_part(*write))
    return found(fmt::format("{} is as the first of its rank's opens has left it, and round {} of start {} was whole", path, expected_->second,
                             expected_->first)),
           false;
  begun_round_ = write->round;
  rank.paths.insert(path);
  count(Did::files_read);
  count(Did::files_read_to_update, may_write);
  return true;
}

// --- what the disks hold

std::optional<LocalName> CheckpointsWorld::newest_name(int node, const std::string& path) const {
  std::optional<LocalName> newest;
  for (const State state : checkpoint::all_states) {
    const InodePtr directory =
        site_.tree.below(*site_.disks[size_t(node)].root,
                         fmt::format("{}/{}", checkpoint::directory_of_attempt(run_.id, run_.attempt), checkpoint::state_name(state)));
    if (!directory) continue;
    for (const auto& [text, inode] : directory->entries)
      if (auto name = checkpoint::decode_local_name(text); name && name->file == path && (!newest || newest->number < name->number))
        newest = std::move(name);
  }
  return newest;
}

size_t CheckpointsWorld::entries(int node, State state, const layout::Attempt& attempt) const {
  const InodePtr directory =
      site_.tree.below(*site_.disks[size_t(node)].root,
                       fmt::format("{}/{}", checkpoint::directory_of_attempt(run_.id, attempt), checkpoint::state_name(state)));
  return directory ? directory->entries.size() : 0;
}

}  // namespace holdfast::sim
