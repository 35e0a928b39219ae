// Checkpoints become plain files, and attempts begin with them.
#include <algorithm>

#include <fmt/format.h>

#include "checkpoint/drain.hpp"
#include "sim/checkpoints_world.hpp"

namespace holdfast::sim {

namespace {

constexpr const char* records = ".checkpoints/drained";

}  // namespace

// By `run`, or by a user's command that may die.
bool CheckpointsWorld::drain_newest() {
  const auto survey = is_single() ? surveyor_->look(run_.id) : Result<checkpoint::Survey>(checkpoint::Survey());
  const auto all = is_single() ? Result<std::vector<checkpoint::Checkpoint>>(survey ? survey->checkpoints : std::vector<checkpoint::Checkpoint>())
                               : surveyor_->look_at_versions();
  const checkpoint::Checkpoint* const newest = all ? newest_whole(*all, run_.id) : nullptr;
  if (!newest) return false;
  const auto files = manifests_of(*newest, is_single() ? survey->versions : surveyor_->last_versions());
  const auto ages = newest->ages();
  if (!is_single()) {
    std::set<CheckpointsModel::Round> rounds;
    for (const auto& [place, file] : newest->files)
      if (const auto* const write = model_.named(CheckpointsModel::key_of(file.version, file.written_on()))) rounds.insert(write->round);
    if (rounds.size() > 1)
      found(fmt::format("step {} of attempt {} is to be drained, and its files are of several rounds", newest->step, text_of(newest->attempt)));
  }
  bool done = false;
  const int process = schedule_.add([&] {
    const auto drained = checkpoint::drain_to_own_places(
        files, ages, settings_, [](uint64_t, uint64_t) { return true; }, [this] { return run_.attempt; });
    done = drained && !Schedule::dead();
  });
  if (!calm_ && one_in(4)) {
    schedule_.kill_after(process, int64_t(1 + random(150)));
    count(Did::drains_killed);
  }
  while (!schedule_.has_ended(process)) Schedule::yield(true);
  note(fmt::format("step {} of attempt {} {}", newest->step, text_of(newest->attempt), done ? "is drained" : "is not drained"));
  count(Did::drained, done);
  return done;
}

// Whose bytes stand at these paths: of one round, whole; nothing where that is not so.
std::optional<CheckpointsModel::Round> CheckpointsWorld::plain_round(const std::vector<std::string>& paths) {
  std::optional<CheckpointsModel::Round> round;
  for (const std::string& path : paths) {
    const auto bytes = bytes_at(path);
    const CheckpointsModel::Write* const write = bytes ? model_.who_wrote(*bytes) : nullptr;
    if (!write || write->path != path || (round && *round != write->round)) return {};
    round = write->round;
  }
  return round;
}

// A file of what stands there, since it was written.
bool CheckpointsWorld::was_removed(const std::vector<std::string>& paths) {
  return std::any_of(paths.begin(), paths.end(), [this](const std::string& path) {
    const auto bytes = bytes_at(path);
    const CheckpointsModel::Write* const write = bytes ? model_.who_wrote(*bytes) : nullptr;
    return write && model_.is_removed(*write);
  });
}

// It was drained while some ranks had written their files again. Where a writer died then, nobody need begin with it.
static bool may_be_of_two_times(const checkpoint::DrainedCheckpoint& record) {
  return std::any_of(record.files.begin(), record.files.end(),
                     [&](const checkpoint::DrainedFile& one) { return one.number() != record.files.front().number(); });
}

// That nodes which are reached have now.
std::vector<checkpoint::DrainedCheckpoint> CheckpointsWorld::drain_records() {
  std::vector<checkpoint::DrainedCheckpoint> all;
  for (int node = 0; node < int(site_.disks.size()); ++node) {
    const InodePtr directory = lost_now_.contains(node) ? nullptr : site_.tree.below(*site_.disks[size_t(node)].root, records);
    if (!directory) continue;
    for (const auto& [name, file] : directory->entries) {
      std::string text(file->now.size(), '\0');
      file->now.read(0, std::as_writable_bytes(std::span(text)));
      if (auto record = checkpoint::decode_drained(text); record && record->run == run_.id) all.push_back(std::move(*record));
    }
  }
  return all;
}

// Where no node had room for the record of a drain, what it has left is like what somebody has put there.
bool CheckpointsWorld::is_noted_as_drained(const std::string& path) {
  const auto all = drain_records();
  return std::any_of(all.begin(), all.end(), [&](const checkpoint::DrainedCheckpoint& record) {
    return std::any_of(record.files.begin(), record.files.end(), [&](const auto& file) { return file.path == path && file.still_there(); });
  });
}

// The newest of which a node that is reached has a record, and of which the files are as the drain has left them.
std::optional<CheckpointsModel::Round> CheckpointsWorld::newest_drained() {
  std::optional<CheckpointsModel::Round> newest;
  for (const checkpoint::DrainedCheckpoint& record : drain_records()) {
    if (!record.still_there()) continue;
    std::vector<std::string> paths;
    for (const checkpoint::DrainedFile& one : record.files) paths.push_back(one.path);
    const auto round = plain_round(paths);
    if (!round) found(fmt::format("step {} of attempt {} is called drained, and is not", record.step, text_of(record.attempt)));
    else if (!was_removed(paths) && !may_be_of_two_times(record) && !model_.may_be_half(*round) && (!newest || *newest < *round)) newest = round;
  }
  return newest;
}

// In calm times all of the newest comes to its paths, and nothing else is left there of drains.
void CheckpointsWorld::check_drain() {
  if (model_.promised.empty() || model_.may_be_half(model_.promised.rbegin()->first) || model_.may_be_half(model_.last_written())) return;
  if (!drain_newest()) return found("in calm times the newest checkpoint is not drained");
  std::vector<std::string> paths;
  for (const auto& [place, file] : model_.promised.rbegin()->second.files)
    if (const auto* const write = model_.named(file.key)) paths.push_back(write->path);
  if (plain_round(paths) != model_.promised.rbegin()->first) return found("what was drained in calm times is not the newest checkpoint");
  for (const auto& [name, node] : site_.tree.below(*site_.tree.root(), directory_of_all + 1)->entries)
    if (name.starts_with(".holdfast-drain-")) return found("a drain in calm times leaves " + name);
}

}  // namespace holdfast::sim
