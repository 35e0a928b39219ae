// A team that was started again and has resumed from a checkpoint of its own. Until its first change it does alone what it calls. That change is looked for in
// the log of the one that it follows. What stands before it was done then: it is passed over, but for its numbers. From there on it catches up as any other.
#include <algorithm>
#include <utility>

#include "redundant/subjects.hpp"
#include "redundant/twins/twins.hpp"

namespace holdfast::redundant {

namespace {

constexpr const char* has_other_place = " is not what the others did when they were there";
constexpr const char* receives_from_anybody =
    "it receives messages from anybody, and which ones is counted from the program's beginning: a team that resumes cannot know it";

constexpr const char* is_beyond = "the team that goes on has resumed beyond what was written down";

}  // namespace

// Others may not have come so far yet, and it would not wait for them at calls of before. The hub knows whether it is the last one, which may go on.
void Twins::says_that_it_is_beyond() {
  if (std::exchange(told_that_beyond_, true)) return;
  Frame frame;
  frame.word = Word::refused, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank), frame.number = 2;
  frame.payload = bytes_of("it has gone on from a checkpoint beyond what was written down, and others have not");
  put(most_teams, frame);
  flush_soon();
}

uint64_t Twins::next_open(uint64_t name) {
  const Busy now;
  std::lock_guard lock(mutex_);
  if (joining_) {
    const uint64_t number = ++early_opens_[name];
    early_names_[open_subject(name, number)] = name;
    return number;
  }
  const uint64_t number = ++opens_[name];
  if (keeps()) keeper_.opened(name, number);
  return number;
}

void Twins::resumes_from(uint64_t subject) {
  const Busy now;
  std::lock_guard lock(mutex_);
  resumed_from_.insert(subject);
}

// Under the lock, which is given up while the log has to grow.
void Twins::join_at(uint64_t subject, const Claim& claim, const std::function<std::string()>& what, std::unique_lock<std::mutex>& lock) {
  while (std::exchange(looks_for_its_place_, true)) changed_.wait_for(lock, std::chrono::milliseconds(1));  // another thread does
  if (!joining_) return;
  const auto named = early_names_.find(subject);
  Join join(subject, claim, named == early_names_.end() ? std::nullopt : std::optional(named->second), resumed_from_);
  const auto give_up = [&](const std::string& why) {
    lock.unlock();
    cannot_catch_up(why);
  };
  their_log_.back();
  for (;;) {
    while (!refused_) {
      const uint64_t at = their_log_.at();
      const auto entry = their_log_.next();
      if (!entry) break;
      join.add(*entry, at);
    }
    const bool all_there = log_has_come_ && !refused_;
    if (all_there && their_log_.is_cut()) give_up(cut_log);
    if (all_there && (join.place() || may_go_beyond_)) break;
    if (all_there && log_is_over_) says_that_it_is_beyond();
    if (all_there && !log_is_over_ && join.is_contradicted()) give_up(what() + has_other_place);
    if (all_there) join.has_all();
    changed_.wait_for(lock, std::chrono::milliseconds(1));
  }
  if (join.has_matches_before() || had_matches_) give_up(receives_from_anybody);
  if (auto then = std::exchange(when_joined_, nullptr)) {
    lock.unlock();
    then();
    lock.lock();
  }
  pass_until(join.place().value_or(~uint64_t(0)), join.later());
  if (!join.place()) {  // what it was told before is written down nowhere
    own_log_trouble_ = is_beyond;
    own_log_.set_cut();
  }
  looks_for_its_place_ = false;
}

void Twins::pass_until(uint64_t place, const CatchUp::Later& later) {
  their_log_.back();
  while (their_log_.at() < place) {
    const auto entry = past_->pass_one(meetings_, decisions_, later);
    if (!entry) break;
    if (entry->kind == Entry::opened) opens_[entry->subject] = std::max(opens_[entry->subject], entry->number);
  }
  for (const auto& [name, number] : early_opens_) {
    const auto then = opens_.find(name);
    if (then != opens_.end() && then->second != number) aliases_[open_subject(name, number)] = open_subject(name, then->second);
  }
  joining_ = false;
  past_->keep_order();
  if (log_is_over_) read_all();
  Outbox out;
  for (auto& [way, frame] : std::exchange(early_frames_, {})) came_of_twin(way, frame, out);
  if (decisions_.is_torn()) refuse(torn);
  put(out);
  changed_.notify_all();
}

}  // namespace holdfast::redundant
