#include "cli/job/caretaker.hpp"

#include <algorithm>
#include <chrono>

#include "base/node_path.hpp"
#include "base/say.hpp"
#include "base/without_signals.hpp"
#include "checkpoint/choice.hpp"
#include "checkpoint/ended.hpp"
#include "cli/job/drop_old.hpp"
#include "cli/job/singles.hpp"

namespace holdfast::cli {

using checkpoint::Checkpoint;
using checkpoint::Run;
using checkpoint::Surveyor;

namespace {

constexpr auto look_every = std::chrono::milliseconds(250);

}  // namespace

Caretaker::Caretaker(const Run& run, const Settings& settings, const CheckpointOptions& options, const std::optional<SimulatedLoss>& loss,
                     Protectors& protectors, Drainer& drainer, PlainBefore& plain_before, const layout::Attempt& first_attempt,
                     const std::set<std::string>& damaged)
    : run_(run),
      settings_(settings),
      options_(options),
      loss_(loss),
      protectors_(protectors),
      drainer_(drainer),
      before_(plain_before),
      first_attempt_(first_attempt),
      damaged_(damaged),
      surveyor_(settings.local, settings.deadline_ms, damaged) {
  const WithoutSignals none;  // they are the job's
  thread_ = std::thread([this] { work(); });
}

void Caretaker::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Caretaker::finish() {
  stop();
  keeps_beginning_ = false;
  if (const auto all = surveyor_.look_during(run_)) tidy(*all);
}

std::optional<Run::From> Caretaker::hold_newest() {
  Surveyor surveyor(settings_.local, settings_.deadline_ms, damaged_);
  const auto all = surveyor.look_during(run_);
  const Checkpoint* const newest = all ? newest_whole(*all, run_.id) : nullptr;
  if (!newest || !newest->endures()) return std::nullopt;
  std::lock_guard lock(mutex_);
  return held_ = from_of(*newest);
}

void Caretaker::work() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, look_every, [this] { return stopping_; })) {
    lock.unlock();
    look();
    lock.lock();
  }
}

void Caretaker::look() {
  for (const Status& remark : protectors_.revive()) say("holdfast: {}\n", remark.sentence());
  if (lost_ && run_.teams == 1)  // a rank there may just have begun, and the job would wait for it; a team that comes back begins where it was
    for (const uint32_t number : loss_->nodes) kill_ranks_on(settings_.local[number - 1], run_);
  if (!ranks_seen_ && run_.teams == 1) ranks_seen_ = checkpoint::ranks_then(run_, settings_.deadline_ms).any_begun();
  const auto all = surveyor_.look_during(run_);
  if (!all) return;
  tidy(*all);
  drop_removed(*all);
  const Checkpoint* const newest = newest_whole(*all, run_.id);
  if (!loss_ || lost_ || !newest || !newest->endures()) return;
  if ((newest->are_singles ? newest->files.size() : newest->step) < loss_->step) return;
  lost_ = true;
  for (const uint32_t number : loss_->nodes) {
    const std::string& address = settings_.local[number - 1];
    say("holdfast: {}; node {} is lost now, as --simulate-loss says\n",
        newest->are_singles ? are_singles(*newest) + " there" : name_of(*newest) + " is whole", parse_node_path(address).node);
    protectors_.kill(address);
    lose_simulated_node(address, run_);
  }
}

void Caretaker::drop_removed(const std::vector<Checkpoint>& all) {
  constexpr unsigned looks_between = 20;
  const auto are_ours = [&](const Checkpoint& one) { return one.are_singles && one.run == run_.id; };
  if (++looks_ % looks_between != 0 || std::none_of(all.begin(), all.end(), are_ours)) return;
  Surveyor surveyor(settings_.local, settings_.deadline_ms);
  const auto survey = surveyor.look(run_.id);
  if (survey) drop_removed_singles(*survey, run_, settings_);
}

void Caretaker::tidy(const std::vector<Checkpoint>& all) {
  if (const Checkpoint* const newest = newest_whole(all, run_.id)) see(seen_, *newest);
  drainer_.offer(all, surveyor_.last_versions(), run_.id, first_attempt_, run_.attempt);
  auto old = to_drop(all, run_.id, size_t(options_.keep));
  std::erase_if(old, [this](const checkpoint::Protected& one) {
    return drainer_.needs(one.version) || (keeps_beginning_ && (is_of_beginning(one.version) || is_held(one.version)));
  });
  drop_old(surveyor_, old, run_, settings_, first_attempt_, before_);
}

bool Caretaker::is_of_beginning(const layout::Version& version) const { return run_.from && is_of(version, run_.id, *run_.from); }

bool Caretaker::is_held(const layout::Version& version) {
  std::lock_guard lock(mutex_);
  return held_ && version.attempt == held_->attempt && version.step == held_->step;
}

}  // namespace holdfast::cli
