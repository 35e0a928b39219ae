#include "cli/job/drainer.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/plural.hpp"
#include "base/say.hpp"
#include "base/without_signals.hpp"
#include "checkpoint/drained.hpp"
#include "cli/command.hpp"
#include "cli/job/singles.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

using checkpoint::Checkpoint;
using checkpoint::Survey;

namespace {

constexpr int background = 10;  // nice(2)

std::set<std::string> ids_of(const Checkpoint& one) {
  std::set<std::string> ids;
  for (const auto& [rank, file] : one.files) ids.insert(file.file_id);
  return ids;
}

// Each of them, in the version that is the newest one now.
bool is_at_its_paths(const Checkpoint& one, const Survey& survey) {
  return std::any_of(survey.drained.begin(), survey.drained.end(), [&](const checkpoint::DrainedCheckpoint& drained) {
    if (drained.run != one.run || drained.are_singles != one.are_singles) return false;
    if (!one.are_singles && (drained.attempt != one.attempt || drained.step != one.step)) return false;
    if (!drained.has_versions()) return true;
    return std::all_of(one.files.begin(), one.files.end(), [&](const auto& file) { return drained.has(file.second); });
  });
}

}  // namespace

Result<DrainWhich> parse_drain(const std::string& text) {
  if (text.empty() || text == "end" || text == "last") return DrainWhich{};
  if (text == "none") return DrainWhich{.any = false};
  constexpr std::string_view every = "every:";
  uint64_t number = 0;
  if (text.starts_with(every)) {
    const auto [end, error] = std::from_chars(text.data() + every.size(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && number > 0) return DrainWhich{.every = number};
  }
  return Status(Kind::invalid, fmt::format("--drain '{}' says nothing: write end (of files), last or every:5 (of checkpoints), or none", text));
}

Result<checkpoint::Drained> drain_to_own_paths(const Checkpoint& which, const std::vector<catalog::FoundVersion>& versions, const Settings& settings,
                                               const engine::Progress& progress, const std::function<layout::Attempt()>& running) {
  return checkpoint::drain_to_own_places(manifests_of(which, versions), which.ages(), settings, progress, running);
}

void Drainer::offer(const std::vector<Checkpoint>& all, const std::vector<catalog::FoundVersion>& versions, const std::string& run,
                    const layout::Attempt& first_attempt, const layout::Attempt& running) {
  if (!which_.any) return;
  const std::lock_guard lock(mutex_);
  running_ = running;
  std::vector<const Checkpoint*> whole;  // ascending
  for (const Checkpoint& one : all)
    if (one.run == run && !(one.attempt < first_attempt) && one.whole()) whole.push_back(&one);
  for (const Checkpoint* const one : whole) {
    const bool is_new = counted_.insert(key_of(*one)).second;
    if (is_new && which_.every && counted_.size() % which_.every == 0) give_order(*one, versions);
    else if (was_written_again(*one, one == whole.back())) drain_again(*one, versions);
  }
  if (!whole.empty() && !ordered_.contains(key_of(*whole.back())) && is_last_chance_for(*whole.back())) give_order(*whole.back(), versions);
}

Drainer::Numbers Drainer::numbers_of(const Checkpoint& one) {
  Numbers numbers;
  for (const auto& [place, file] : one.files) numbers[place] = file.version.number;
  return numbers;
}

// What was written again since it was drained would stay as it was at the user's path. Where ranks have done so less often than others they may be about to,
// as long as nothing newer is whole: what is at the path is of one time, and is better than a mixture. The drain at the end takes the rest.
bool Drainer::was_written_again(const Checkpoint& one, bool is_newest) const {
  const auto ordered = ordered_.find(key_of(one));
  if (ordered == ordered_.end() || ordered->second.ids == ids_of(one)) return false;
  const Numbers now = numbers_of(one), &before = ordered->second.numbers;
  if (one.are_singles || !is_newest || now.size() != before.size() || now.empty()) return true;
  const uint32_t more = now.begin()->second - before.begin()->second;
  return std::equal(now.begin(), now.end(), before.begin(),
                    [&](const auto& a, const auto& b) { return a.first == b.first && a.second - b.second == more; });
}

// It takes no other one's turn.
void Drainer::drain_again(const Checkpoint& one, const std::vector<catalog::FoundVersion>& versions) {
  Order order = order_for(one, versions);
  if (next_ && key_of(next_->checkpoint) == key_of(one)) next_ = std::move(order);
  else again_.insert_or_assign(key_of(one), std::move(order));
  ordered_[key_of(one)] = {ids_of(one), numbers_of(one)};
  begin_work();
}

// With the allocation the nodes' disks may go: twice the time that it should take, and a minute.
bool Drainer::is_last_chance_for(const Checkpoint& one) {
  return allocation_.is_within(std::chrono::seconds(60 + int64_t(2 * double(one.bytes) / bytes_per_second_)));
}

// One at a time, and one that waits: storage that is slower than the job gets the newer ones.
void Drainer::give_order(const Checkpoint& one, const std::vector<catalog::FoundVersion>& versions) {
  if (next_ && !one.are_singles)
    say("holdfast: checkpoint {} is not drained: checkpoint {} is whole before its turn has come\n", next_->checkpoint.step, one.step);
  next_ = order_for(one, versions);
  ordered_[key_of(one)] = {ids_of(one), numbers_of(one)};
  begin_work();
}

Drainer::Order Drainer::order_for(const Checkpoint& one, const std::vector<catalog::FoundVersion>& versions) {
  Order order{one, {}};
  const auto ids = ids_of(one);
  for (const catalog::FoundVersion& version : versions)
    if (ids.count(version.manifest.file_id)) order.versions.push_back(version);
  return order;
}

void Drainer::begin_work() {
  wake_.notify_all();
  if (thread_.joinable()) return;
  const WithoutSignals none;  // they are the job's
  thread_ = std::thread([this] { work(); });
}

void Drainer::work() {
  (void)::setpriority(PRIO_PROCESS, id_t(::gettid()), background);
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || next_ || !again_.empty(); });
    if (next_) now_ = std::exchange(next_, std::nullopt);
    else if (!again_.empty()) now_ = std::move(again_.extract(again_.begin()).mapped());
    else return;
    lock.unlock();
    const auto began = std::chrono::steady_clock::now();
    const bool done = drain(*now_, [](uint64_t, uint64_t) { return !interrupted(); });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    lock.lock();
    if (done) done_[key_of(now_->checkpoint)] = ids_of(now_->checkpoint);
    if (done && now_->checkpoint.bytes > 0) bytes_per_second_ = double(now_->checkpoint.bytes) / std::max(took.count(), 1e-3);
    now_.reset();
  }
}

bool Drainer::drain(const Order& order, const engine::Progress& progress) {
  const Checkpoint& one = order.checkpoint;
  const auto running = [this] {
    const std::lock_guard lock(mutex_);
    return running_;
  };
  const auto drained = drain_to_own_paths(one, order.versions, settings_, progress, running);
  if (drained && one.are_singles)
    say("holdfast: {} drained: plain at {} ({})\n", are_singles(one), one.files.size() == 1 ? "its path" : "their paths",
        human_bytes(drained->bytes));
  else if (drained)
    say("holdfast: checkpoint {} is drained: plain at its paths ({}, {})\n", one.step, plural(one.files.size(), "file"), human_bytes(drained->bytes));
  else if (one.are_singles)
    say("holdfast: {} not drained: {}; that can be done later: holdfast checkpoints --drain 'PATTERN'\n", are_singles(one),
        drained.status().sentence());
  else
    say("holdfast: checkpoint {} is not drained: {}; from the nodes' disks it can be later: holdfast checkpoints --drain {}\n", one.step,
        drained.status().sentence(), one.step);
  return drained.ok();
}

bool Drainer::needs(const layout::Version& version) const {
  const std::lock_guard lock(mutex_);
  const auto has_it = [&](const Checkpoint& one) {
    return one.run == version.run && one.are_singles == version.is_single() &&
           (one.are_singles || key_of(one) == Key{version.run, version.attempt, version.step});
  };
  return (next_ && has_it(next_->checkpoint)) || (now_ && has_it(now_->checkpoint)) ||
         std::any_of(again_.begin(), again_.end(), [&](const auto& order) { return has_it(order.second.checkpoint); });
}

bool Drainer::has_left(const checkpoint::Protected& file) const {
  const layout::Version& version = file.version;
  return std::any_of(ordered_.begin(), ordered_.end(), [&](const auto& order) {
    const auto& [key, files] = order;
    const std::set<std::string>& ids = files.ids;
    const auto done = done_.find(key);
    const bool is_of_it = ids.contains(file.file_id) || (!version.is_single() && key == Key{version.run, version.attempt, version.step});
    return is_of_it && (done == done_.end() || done->second != ids);
  });
}

bool Drainer::finish() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (!thread_.joinable()) return false;
  thread_.join();
  return true;
}

bool Drainer::drain_last(const Checkpoint& last, const Survey& survey) {
  // By this run, or by one before where nothing newer has been written since.
  const auto done = done_.find(key_of(last));
  if (done != done_.end() ? done->second == ids_of(last) : is_at_its_paths(last, survey)) return true;
  if (!which_.any && last.are_singles) {
    say("holdfast: {} not drained, as --drain none says; before the nodes' disks are wiped, run: holdfast checkpoints --drain 'PATTERN'\n",
        are_singles(last));
    return true;
  }
  if (!which_.any) {
    say("holdfast: checkpoint {} is not drained, as --drain none says; before the nodes' disks are wiped, run: holdfast checkpoints --drain {}\n",
        last.step, last.step);
    return true;
  }
  ProgressBar bar("drain " + name_of(last));
  return drain({last, survey.versions}, bar.callback());
}

}  // namespace holdfast::cli
