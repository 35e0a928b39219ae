// Files of a pattern without any field: what ranks do with them, and what must hold of each by itself (checkpoints_singles_model.hpp).
#include <fcntl.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/singles.hpp"
#include "sim/checkpoints_world.hpp"

namespace holdfast::sim {

using checkpoint::LocalName;
using checkpoint::State;

namespace {

constexpr const char* names[] = {"a", "b", "c", "d"};

std::string text_of(const SinglesModel::Order& order) { return fmt::format("version {} of start {}", order.number, order.start); }

}  // namespace

std::string CheckpointsWorld::single_path(size_t which) { return fmt::format("{}/{}.dat", directory_of_all, names[which]); }

// --- what ranks do

// In a round each file is one rank's, in the next one another's.
void CheckpointsWorld::work_on_singles(RankOf& rank, uint64_t round) {
  for (size_t which = 0; which < std::size(names); ++which) {
    if ((which + round) % ranks_ != rank.number || one_in(3) || unreadable_.contains(single_path(which))) continue;
    const bool done = one_in(4) ? remove_single(rank, single_path(which)) : write_single(rank, single_path(which), round);
    if (Schedule::dead()) return;
    if (!done) return;
  }
  rank.ended_well = !Schedule::dead();
}

bool CheckpointsWorld::write_single(RankOf& rank, const std::string& path, uint64_t round) {
  constexpr size_t sizes[] = {8, 100, 4096, 9001, 20000};
  const auto file = rank.front->match(path);
  if (!file || Schedule::dead()) return false;
  Status status;
  bool done = false;
  if (one_in(3)) {
    done = update_single(rank, *file, round, status);
  } else {
    const uint64_t number = model_.begin_write({attempts_.size(), round}, 0, path, rank.number, any_size(sizes), random_);
    done = one_in(4)   ? rename_to_single(rank, *file, number, status)
           : one_in(4) ? move_to_single(rank, *file, number, status)
                       : write_single_anew(rank, *file, number, status);
  }
  if (!done && !Schedule::dead() && calm_ && all_well()) found(fmt::format("{} cannot be written: {}", path, status.sentence()));
  return done && !Schedule::dead() && check_own_single(rank, path);
}

// As write_in_place(), with the order that the file has got.
bool CheckpointsWorld::write_single_anew(RankOf& rank, const Front::File& file, uint64_t number, Status& status) {
  const int fd = rank.front->open_to_write(file, O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
  if (fd < 0) return false;
  return write_single_at(rank, file, fd, number, {{0, model_.write(number).content.size()}});
}

// What it has is what somebody has left there.
bool CheckpointsWorld::update_single(RankOf& rank, const Front::File& file, uint64_t round, Status& status) {
  const int fd = rank.front->open_to_write(file, O_RDWR | O_CREAT, 0644, status);
  if (fd < 0) return false;
  const auto name = newest_name(rank.node, file.path);
  const checkpoint::LocalFiles files(parse_node_path(site_.disks[size_t(rank.node)].address).path, run_.id, run_.attempt);
  const auto before = name ? bytes_at(files.path(State::writing, *name)) : std::nullopt;
  if (Schedule::dead() || !before) return close_single(rank, fd, true), false;
  const CheckpointsModel::Write* const last = before->empty() ? nullptr : model_.who_wrote(*before);
  if (!before->empty() && (!last || last->path != file.path))
    return found(fmt::format("an update of {} begins with what nobody has written: {}", file.path, model_.likeness(*before))), false;
  const std::pair<size_t, size_t> part{sizeof(uint64_t) + random(5000), 1 + random(5000)};
  if (last) return write_single_at(rank, file, fd, model_.begin_update(*last, part, random_), {{0, sizeof(uint64_t)}, part});
  const uint64_t number = model_.begin_write({attempts_.size(), round}, 0, file.path, rank.number, 1000, random_);
  return write_single_at(rank, file, fd, number, {{0, model_.write(number).content.size()}});
}

bool CheckpointsWorld::write_single_at(RankOf& rank, const Front::File& file, int fd, uint64_t number,
                                       const std::vector<std::pair<size_t, size_t>>& parts) {
  CheckpointsModel::Write& write = model_.write(number);
  if (const auto name = newest_name(rank.node, file.path)) name_single(rank, file.path, *name, number);
  bool written = true;
  for (const auto& [offset, bytes] : parts)
    written = written && catalog::environment().pwrite(fd, write.content.data() + offset, bytes, offset) == ssize_t(bytes) && !Schedule::dead();
  write.complete = written;
  close_single(rank, fd, !written && !closes_all_the_same(rank, fd));
  return written && !Schedule::dead();
}

void CheckpointsWorld::close_single(RankOf& rank, int fd, bool given_up) {
  catalog::environment().close(fd);
  const std::string closed = rank.front->closed(fd, given_up);
  if (settings_.protect_at_close && !closed.empty() && !Schedule::dead()) count(Did::closes_protected, rank.front->protected_at_close(closed).ok());
}

void CheckpointsWorld::name_single(const RankOf& rank, const std::string& path, const LocalName& name, uint64_t number) {
  model_.name(number, name_key(rank, name));
  singles_.files[path].writes[number] = {attempts_.size(), name.number};
}

bool CheckpointsWorld::rename_to_single(RankOf& rank, const Front::File& file, uint64_t number, Status& status) {
  const std::string plain = fmt::format("{}/new.{}", directory_of_all, number);
  {
    const catalog::Descriptor fd(catalog::environment().openat(AT_FDCWD, plain.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644));
    const Bytes& content = model_.write(number).content;
    if (!fd || catalog::environment().pwrite(fd.get(), content.data(), content.size(), 0) != ssize_t(content.size()) || Schedule::dead())
      return false;
  }
  const bool done = take_as_single(rank, plain, file, number, status);
  count(Did::files_renamed, done);
  (void)catalog::unlink_file(plain);
  return done;
}

bool CheckpointsWorld::take_as_single(RankOf& rank, const std::string& from, const Front::File& to, uint64_t number, Status& status) {
  const auto before = newest_name(rank.node, to.path);
  model_.write(number).complete = true;
  status = rank.front->take(from, to);
  const auto name = newest_name(rank.node, to.path);
  if (name && (!before || before->number < name->number)) name_single(rank, to.path, *name, number);
  return status.ok() && !Schedule::dead();
}

// From one such file's name to another's.
bool CheckpointsWorld::move_to_single(RankOf& rank, const Front::File& file, uint64_t number, Status& status) {
  std::string other = file.path;
  other.insert(other.rfind('.'), "-new");
  const auto source = rank.front->match(other);
  if (!source || !write_single_anew(rank, *source, number, status)) return false;
  for (uint64_t turns = random(3) * random(60); turns > 0; --turns) Schedule::yield(true);
  for (status = Status(Kind::not_found, ""); status.kind() == Kind::not_found;) {  // it may have gone on to its next state
    const auto seen = Schedule::dead() ? Result<Front::Sight>(Status(Kind::io, "")) : rank.front->look(*source);
    if (Schedule::dead() || !seen || seen->what != Front::Sight::local) return status = Status(Kind::io, other + " is not to be seen"), false;
    (void)take_as_single(rank, seen->path, file, number, status);
    if (Schedule::dead()) return false;
  }
  const bool done = status.ok() && remove_single(rank, other);
  count(Did::files_moved, done);
  return done;
}

bool CheckpointsWorld::remove_single(RankOf& rank, const std::string& path) {
  const auto file = rank.front->match(path);
  if (!file) return false;
  const auto boots = boots_;
  const Status gone = rank.front->remove(*file);
  if (gone.kind() == Kind::not_found && rank.front->shows_plain(*file)) (void)catalog::unlink_file(path);  // as the doors do
  SinglesModel::File& single = singles_.files[path];
  if (const auto number = hidden_number(path)) {  // also where the call has failed, or who made it has died: then nobody need remember it
    SinglesModel::Removal removal{{attempts_.size(), *number}, {}};
    for (int node = 0; gone.ok() && !Schedule::dead() && node < int(site_.disks.size()); ++node)
      if (remembers_surely(node, rank.node) && boots == boots_) removal.remembered.insert(node);
    if (!single.last_removal() || *single.last_removal() < removal.order) single.removals.push_back(removal);
  }
  if (Schedule::dead()) return false;
  if (!gone && gone.kind() != Kind::not_found) {
    if (calm_ && all_well()) found(fmt::format("{} cannot be removed: {}", path, gone.sentence()));
    return false;
  }
  note(fmt::format("rank {} removes {}", rank.number, path));
  count(Did::removals, gone.ok());
  const auto sight = rank.front->look(*file);
  if (sight && !Schedule::dead() && is_up(rank.node) && sight->what == Front::Sight::local) found(path + " was removed and is to be seen");
  return !Schedule::dead();
}

// On any node, in this attempt.
std::optional<uint32_t> CheckpointsWorld::hidden_number(const std::string& path) const {
  const std::string below = fmt::format("{}/{}", checkpoint::directory_of_attempt(run_.id, run_.attempt), state_name(State::hidden));
  std::optional<uint32_t> number;
  for (const NodeDisk& disk : site_.disks) {
    const InodePtr directory = site_.tree.below(*disk.root, below);
    if (!directory) continue;
    for (const auto& [text, inode] : directory->entries)
      if (const auto name = checkpoint::decode_local_name(text); name && name->file == path && (!number || *number < name->number))
        number = name->number;
  }
  return number;
}

// What somebody on `from` has it note. A disk that is full, or about to fail, may not.
bool CheckpointsWorld::remembers_surely(int node, int from) {
  const bool is_of_pool = site_.tree.find(*site_.disks[size_t(node)].root, "holdfast-target.json") != nullptr;
  const bool has_way = node == from ? is_up(node) : is_reached(node) && is_of_pool && !cut_off_.contains(from);
  return has_way && !site_.disks[size_t(node)].full && !about_to_fail_.contains(node);
}

// --- what they may read

void CheckpointsWorld::read_singles(RankOf& rank) {
  for (size_t which = 0; which < std::size(names) && !failed(); ++which) {
    const bool is_read = check_single(rank, single_path(which));
    if (Schedule::dead()) return;
    if (!is_read) unreadable_.insert(single_path(which));  // the others are none the worse
  }
  if (rank.number == 0) check_listing_of_singles(rank);
  rank.ended_well = !Schedule::dead();
}

// Nothing: it is not there. False: it cannot be read.
bool CheckpointsWorld::look_at_single(RankOf& rank, const std::string& path, std::optional<SinglesModel::Order>& order, std::string& why) {
  const auto file = rank.front->match(path);
  const auto sight = file ? rank.front->look(*file) : Result<Front::Sight>(Status(Kind::io, "no match"));
  if (Schedule::dead() || !sight) return why = sight ? "" : sight.status().sentence(), false;
  const std::string at = sight->what == Front::Sight::local ? sight->path : path;
  if (sight->what == Front::Sight::absent || (sight->what == Front::Sight::as_without && !catalog::look(path, true))) return !Schedule::dead();
  const auto bytes = bytes_at(at);
  if (Schedule::dead() || !bytes) return why = at + " is not there", false;
  const CheckpointsModel::Write* const write = model_.who_wrote(*bytes);
  if (!write) return found(fmt::format("{} has bytes that nobody has written: {}", path, model_.likeness(*bytes))), false;
  const auto& writes = singles_.files[path].writes;
  const auto known = writes.find(write->number);
  if (known == writes.end()) return found(fmt::format("{} has bytes of {}, which never had this name", path, write->path)), false;
  order = known->second;
  return true;
}

// A drained one is there as well where its nodes are lost.
std::optional<SinglesModel::Order> CheckpointsWorld::least_of_single(const std::string& path) {
  const auto least = SinglesModel::least_of(singles_.files[path], keep_, lost_now_, model_);
  const auto drained = drained_least_.find(path);
  return drained == drained_least_.end() || (least && drained->second < *least) ? least : std::optional(drained->second);
}

bool CheckpointsWorld::check_single(RankOf& rank, const std::string& path) {
  std::optional<SinglesModel::Order> order;
  std::string why;
  const bool is_read = look_at_single(rank, path, order, why);
  if (Schedule::dead() || failed()) return false;
  learn_of_renewals();
  look_at_nodes();
  const SinglesModel::File& file = singles_.files[path];
  const auto least = least_of_single(path);
  if (!is_read) {
    count(Did::reads_refused);
    if (calm_ && all_well() && least) found(fmt::format("{} cannot be read, and {} was protected: {}", path, text_of(*least), why));
    return false;
  }
  if (least && (!order || *order < *least))
    found(fmt::format("{} is {}, and {} was protected", path, order ? text_of(*order) : "not there", text_of(*least)));
  const auto removed = file.kept_away(lost_now_, attempts_.size());
  if (removed && order && *order <= *removed && as_if_put_back(path) != order)
    found(fmt::format("{} is {}, and was removed at {}", path, text_of(*order), text_of(*removed)));
  count(Did::files_read, order.has_value());
  return !failed();
}

// What a drain has left at its path is taken for a file that somebody has put there, where no node has a record of that drain.
std::optional<SinglesModel::Order> CheckpointsWorld::as_if_put_back(const std::string& path) {
  const auto plain = bytes_at(path);
  const CheckpointsModel::Write* const write = plain ? model_.who_wrote(*plain) : nullptr;
  const auto& writes = singles_.files[path].writes;
  const auto known = write ? writes.find(write->number) : writes.end();
  return known == writes.end() || is_noted_as_drained(path) ? std::nullopt : std::optional(known->second);
}

// A close is seen by whoever opens the file then, on that node. What another rank has written meanwhile a node that is cut off knows nothing of.
bool CheckpointsWorld::check_own_single(RankOf& rank, const std::string& path) {
  std::optional<SinglesModel::Order> own;
  for (const auto& [number, order] : singles_.files[path].writes)
    if (model_.write(number).rank == rank.number) own = order;  // ascending
  std::optional<SinglesModel::Order> order;
  std::string why;
  const bool is_read = look_at_single(rank, path, order, why);
  if (Schedule::dead() || failed() || !is_up(rank.node)) return !Schedule::dead() && !failed();
  if (is_read && own && (!order || *order < *own))
    found(fmt::format("{} is {}, and {} was just written", path, order ? text_of(*order) : "not there", text_of(*own)));
  return !failed();
}

void CheckpointsWorld::check_listing_of_singles(RankOf& rank) {
  const auto listing = rank.front->list(directory_of_all);
  if (Schedule::dead() || !listing || !*listing || !calm_ || !all_well()) return;
  for (size_t which = 0; which < std::size(names); ++which) {
    const SinglesModel::File& file = singles_.files[single_path(which)];
    const std::string name = catalog::name_of(single_path(which));
    const auto least = least_of_single(single_path(which));
    const bool is_plain = catalog::look(single_path(which), true) && !rank.front->hides(**listing, name);
    const bool is_listed = (*listing)->names.contains(name) || is_plain;
    if (least && !is_listed) found(name + " was protected and is not listed");
    const auto removed = file.kept_away(lost_now_, attempts_.size()), written = file.last_write();
    if (removed && written && *written <= *removed && is_listed && !as_if_put_back(single_path(which))) found(name + " was removed and is listed");
  }
}

// --- what the driver sees

void CheckpointsWorld::note_removed_singles(const checkpoint::Survey& survey) {
  checkpoint::note_removed(survey, run_, settings_.deadline_ms);
  if (surveyor_->look_at_versions()) drop_removed_singles(survey);
  const auto bears = survey.versions.empty() ? 0 : survey.versions.front().manifest.geometry.scheme.m;  // all have one scheme
  if (survey.silent.size() > size_t(bears)) return;
  for (auto& [path, file] : singles_.files) {
    const auto is_newer = [&, at = path](const checkpoint::Protected& one) { return one.version.file == at; };
    const auto has_it = [&](const checkpoint::Checkpoint& one) {
      return std::any_of(one.files.begin(), one.files.end(), [&](const auto& other) { return is_newer(other.second); }) ||
             std::any_of(one.lost.begin(), one.lost.end(), is_newer) || std::any_of(one.plain.begin(), one.plain.end(), is_newer);
    };
    const auto removed = file.kept_away(lost_now_);
    if (!removed || std::any_of(survey.checkpoints.begin(), survey.checkpoints.end(), has_it)) continue;
    const auto plain = bytes_at(path);  // of a drain, where the nodes have lost what was written since
    const CheckpointsModel::Write* const write = plain ? model_.who_wrote(*plain) : nullptr;
    if (const auto drained = write ? file.writes.find(write->number) : file.writes.end(); drained != file.writes.end() && *removed < drained->second)
      continue;
    SinglesModel::Removal removal{{attempts_.size(), 0}, {}};
    for (int node = 0; node < int(site_.disks.size()); ++node)
      if (remembers_surely(node, -1) && !lost_now_.contains(node)) removal.remembered.insert(node);
    file.removals.push_back(removal);
  }
}

void CheckpointsWorld::look_at_singles() {
  const auto survey = surveyor_->look(run_.id);
  if (!survey) return;
  for (const checkpoint::Checkpoint& one : survey->checkpoints)
    if (one.are_singles && one.run == run_.id) promise_singles(one, survey->versions);
  if (surveyor_->look_at_versions()) drop_removed_singles(*survey);
}

// As `run` does.
void CheckpointsWorld::drop_removed_singles(const checkpoint::Survey& survey) {
  std::vector<checkpoint::Protected> removed = survey.removed;
  std::erase_if(removed, [this](const checkpoint::Protected& one) { return one.version.run != run_.id; });
  for (const std::vector<layout::Manifest>& files : surveyor_->stores_of(removed)) {
    count(Did::versions_dropped, files.size());
    dropping_ = true;
    (void)checkpoint::drop(files, run_.attempt, settings_);
    dropping_ = false;
  }
}

// By each look, and not the newest alone: what is dropped by one is older than all that are kept of what that one has seen.
void CheckpointsWorld::promise_singles(const checkpoint::Checkpoint& all, const std::vector<catalog::FoundVersion>& versions) {
  for (const auto& [place, file] : all.files) promise_single(file, versions);
  for (const checkpoint::Protected& file : all.older)
    if (file.readable) promise_single(file, versions);
}

void CheckpointsWorld::promise_single(const checkpoint::Protected& file, const std::vector<catalog::FoundVersion>& versions) {
  const std::string& path = file.version.file;
  const CheckpointsModel::Write* const write = model_.named(CheckpointsModel::key_of(file.version, file.written_on()));
  if (!write || !write->complete) return found(fmt::format("a version of {} is protected that nobody has closed", path));
  SinglesModel::File& single = singles_.files[path];
  const auto order = single.writes.find(write->number);
  if (order == single.writes.end()) return found(fmt::format("{} is protected with the bytes of {}", path, write->path));
  const auto manifest = std::find_if(versions.begin(), versions.end(), [&](const auto& one) { return one.manifest.file_id == file.file_id; });
  if (!file.endures || manifest == versions.end()) return;
  SinglesModel::Promise& promise = single.promised[order->second];
  const bool is_new = promise.file.id.empty();
  if (promise.file.id == file.file_id) return;
  const auto& geometry = manifest->manifest.geometry;
  promise = {order->second, {file.file_id, CheckpointsModel::key_of(file.version, file.written_on()), geometry.scheme.k, geometry.scheme.width()}};
  for (const std::string& address : file.on) model_.held[size_t(node_of(address))].insert(file.file_id);
  count(is_new ? Did::checkpoints_whole : Did::files_made_anew);
}

// In calm times what was written last is protected, or what was removed is gone.
void CheckpointsWorld::check_calm_singles() {
  look_at_singles();
  for (const auto& [path, file] : singles_.files) {
    const auto written = file.last_write(), removed = file.last_removal();
    if (!written || written->start != attempts_.size() || (removed && *written <= *removed)) continue;
    if (!file.promised.contains(*written)) found(fmt::format("in calm times {} of {} is not protected at the end", text_of(*written), path));
  }
}

void CheckpointsWorld::check_no_single_is_left() {
  for (size_t node = 0; node < site_.disks.size(); ++node)
    for (const auto& [name, directory] : site_.disks[node].root->entries)
      for (const layout::Manifest& manifest : final_manifests_in(name, *directory)) {
        const auto* const write = model_.named(CheckpointsModel::key_of(manifest));
        const SinglesModel::File& file = singles_.files[manifest.version->file];
        const auto order = write ? file.writes.find(write->number) : file.writes.end();
        if (manifest.version->run != run_.id || order == file.writes.end()) continue;
        if (const auto removed = file.kept_away({}); removed && order->second <= *removed)
          return found(fmt::format("n{} keeps {} of {}, which was removed at {}", node + 1, text_of(order->second), manifest.version->file,
                                   text_of(*removed)));
        const auto newer = std::distance(file.promised.upper_bound(order->second), file.promised.end());
        if (size_t(newer) >= keep_ && is_each_there(file, order->second))
          return found(fmt::format("n{} keeps {} of {}, which was dropped", node + 1, text_of(order->second), manifest.version->file));
      }
}

// As many newer ones as are kept.
bool CheckpointsWorld::is_each_there(const SinglesModel::File& file, const SinglesModel::Order& after) const {
  size_t there = 0;
  for (auto one = file.promised.upper_bound(after); one != file.promised.end(); ++one) there += is_there({0, {{"", one->second.file}}});
  return there >= keep_;
}

// All are plain, and then more nodes are lost than the scheme bears: what the program finds is no older for that.
void CheckpointsWorld::check_drained_singles() {
  if (!drain_newest()) return;
  std::map<std::string, SinglesModel::Order> newest;
  for (const auto& [path, file] : singles_.files)
    if (const auto least = SinglesModel::least_of(file, keep_, {}, model_)) newest[path] = *least;
  const size_t left = random(site_.disks.size());
  for (size_t node = 0; node < site_.disks.size(); ++node)
    if (node != left && !one_in(4)) {
      note(fmt::format("n{} is wiped", node + 1));
      site_.change_disk(int(node), nullptr);
      model_.held[node].clear();
      singles_.forget_notes_of(int(node));
    }
  count(Did::damage_beyond);
  drained_least_ = newest;
  begin_run();
  (void)attempt(true);
}

}  // namespace holdfast::sim
