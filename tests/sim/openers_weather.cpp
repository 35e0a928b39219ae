// What happens between processes and the agents of nodes: ways that are cut, processes that stop for a while, and processes that fork.
#include <algorithm>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#include "sim/openers_actor.hpp"

namespace holdfast::sim {

namespace {
constexpr int for_good = 1 << 20;  // turns: no schedule has so many
}

RunningOpener* OpenersWorld::opener_of(int process) const {
  for (const auto& opener : openers_)
    if (std::find(opener->processes.begin(), opener->processes.end(), process) != opener->processes.end()) return opener.get();
  return nullptr;
}

// One of one rank that has not ended, and is well.
RunningOpener* OpenersWorld::lone_opener() {
  std::vector<RunningOpener*> living;
  for (const auto& opener : openers_)
    if (opener->ended < opener->ranks && opener->ranks == 1 && !opener->cut_off && !opener->processes.empty()) living.push_back(opener.get());
  return living.empty() ? nullptr : living[random(living.size())];
}

// Whether a call of it may have failed for that. It does no more then but to close.
bool OpenersWorld::is_cut_off(int process) const {
  RunningOpener* const opener = opener_of(process);
  return opener && opener->cut_off && (opener->has_failed = true);
}

void OpenersWorld::trouble_the_network() {
  switch (random(4)) {
    case 0: return cut_from_victims();
    case 1: return cut_off_an_opener();
    default: return stop_somebody();
  }
}

// For a while. Half of the time that is longer than agents wait for whom they hear nothing of.
void OpenersWorld::cut_ways(int process, const std::vector<int>& places, int turns) {
  const Kind how = one_in(2) ? Kind::io : Kind::timed_out;
  const bool expires = one_in(2) || turns == for_good;
  for (const int place : places) {
    site_.agents.cut(process, place, how, turns);
    ++coverage_[Seen::ways_cut];
    last_.push_back({process, "is cut off from place", uint64_t(place), uint64_t(place) + 1, expires ? "for long" : ""});
    if (!expires) continue;
    constexpr uint64_t longest = 400;
    schedule_.add([this, process, place, left = random(std::min(uint64_t(turns), longest))]() mutable {
      for (; left > 0; --left) Schedule::yield(true);
      site_.agents.expire(process, place);
    });
  }
}

// A process, or all of a job, from members that may be lost: nobody may see it.
void OpenersWorld::cut_from_victims() {
  if (victims_.empty() || processes_.empty()) return;
  const int process = *std::next(processes_.begin(), long(random(processes_.size())));
  std::vector<int> places;
  for (const int member : victims_)
    if (places.empty() || one_in(2)) places.push_back(places_[size_t(member)]);
  RunningOpener* const opener = opener_of(process);
  const int turns = 1 + int(random(one_in(2) ? 40 : 400));
  if (!opener || one_in(2)) return cut_ways(process, places, turns);
  for (const int rank : opener->processes)
    if (processes_.contains(rank)) cut_ways(rank, places, turns);
}

// From more members than may be lost, perhaps from the path as well, and for good: if it found a way again, it could lose one after another and go on
// with each. Its calls fail. Before it has noticed all it may say of up to M members that they are stale, so no others are hurt in such a phase.
void OpenersWorld::cut_off(RunningOpener& opener, bool expires) {
  const int process = opener.processes[0];
  std::vector<int> places = places_;
  std::shuffle(places.begin(), places.end(), random_);
  const size_t least = size_t(geometry_.scheme.m) + 1;
  places.resize(least + random(places.size() - least + 1));
  opener.cut_off = true;
  ++coverage_[Seen::openers_cut_off];
  if (one_in(2) && reachable_.contains(process)) site_.hidden_from.insert(process);
  cut_ways(process, places, for_good);
  for (const int place : places)
    if (expires) site_.agents.expire(process, place);
}

void OpenersWorld::cut_off_an_opener() {
  RunningOpener* const opener = !cuts_off_ || !one_in(3) ? nullptr : lone_opener();
  if (opener) cut_off(*opener, false);
}

// Rather one that is in a commit. With its node it stops for so long that no agent waits for it: where it is alone all of them give it up.
void OpenersWorld::stop_somebody() {
  const bool in_a_commit = !committing_.empty() && !one_in(4);
  if (processes_.empty()) return;
  const int process = in_a_commit ? *std::next(committing_.begin(), long(random(committing_.size())))
                                  : *std::next(processes_.begin(), long(random(processes_.size())));
  if (!processes_.contains(process)) return;
  schedule_.stop(process, 5 + int(random(one_in(2) ? 50 : 500)));
  ++coverage_[Seen::processes_stopped];
  coverage_[Seen::stopped_in_a_commit] += committing_.contains(process);
  last_.push_back({process, "is stopped", 0, 0, ""});
  if (way_.single || !one_in(3)) return;
  RunningOpener* const opener = opener_of(process);
  if (cuts_off_ && opener && opener->ranks == 1 && !opener->cut_off) return cut_off(*opener, true);
  last_.push_back({process, "loses sessions with members that are hurt", 0, 0, ""});
  for (const int member : victims_) site_.agents.expire(process, places_[size_t(member)]);
}

// What a process has open when it forks.
struct OpenersWorld::Inherited {
  std::string name;
  std::shared_ptr<target::Target> target;
  std::shared_ptr<target::Object> object;
  std::unique_ptr<target::Lock> lock;
};

// The child reads what its parent had open, by a connection of its own, and then opens the file as another program would. The parent goes on.
void OpenersWorld::fork_off(Actor& actor) {
  if (alone_ >= 0 || living_openers() >= 4 || Schedule::dead()) return;
  auto copies = std::make_shared<Inherited>();
  copies->name = "of-" + std::to_string(actor.process) + "-" + std::to_string(openers_.size());
  const Bytes bytes(8, std::byte(actor.process));
  const Place& place = site_.places[size_t(place_of_forks_)];
  auto attached = site_.agents.attach_for_children(target::make_memory_target(place.directory, place.path), place_of_forks_);
  if (Schedule::dead() || !went_well("attach before a fork", 0, 0, attached.status())) return;
  copies->target = *attached;
  if (!went_well("put before a fork", 0, 0, copies->target->put(copies->name, bytes, false))) return;
  auto object = copies->target->open(copies->name, target::OpenMode::read);
  auto lock = copies->target->try_lock(copies->name + ".lock");
  if (!went_well("open before a fork", 0, 0, object.status()) || !went_well("lock before a fork", 0, 0, lock.status())) return;
  copies->object = *object;
  copies->lock = std::move(*lock);
  if (alone_ >= 0) return;  // meanwhile
  launch_opener(1, [this, parent = actor.process, copies] { begin_child(parent, *copies); });
  forking_.insert(actor.process);
  site_.agents.forked(actor.process, openers_.back()->processes[0]);
  ++coverage_[Seen::forks];
}

void OpenersWorld::begin_child(int parent, Inherited& copies) {
#if defined(__SANITIZE_ADDRESS__)
  const __lsan::ScopedDisabler as_in_a_child;  // which leaves its parent's connection as it is
#endif
  site_.agents.close_in_child(parent);
  forking_.erase(forking_.find(parent));
  Bytes bytes(8);
  const iovec into{bytes.data(), bytes.size()};
  const auto got = copies.object->read(0, {&into, 1});
  if (went_well("read by a child what its parent had open", 0, 0, got.status()) && bytes[0] != std::byte(parent))
    found("a child reads something else");
  (void)went_well("remove by a child", 0, 0, copies.target->remove(copies.name));
  copies.lock.reset();  // its copy
  if (Schedule::dead()) return;
  const Place& place = site_.places[size_t(place_of_forks_)];
  const bool ended = schedule_.has_ended(parent) || schedule_.is_dead(parent);
  const bool busy = target::make_memory_target(place.directory, place.path)->try_lock(copies.name + ".lock").status().kind() == Kind::busy;
  coverage_[Seen::children_of_the_dead] += ended;
  // Another child that has not begun yet still has its copies of the connections.
  if (busy && ended && !forking_.contains(parent)) found("the lock of a parent that has ended stays while its child lives");
  if (!busy && !ended) found("a child lets go of its parent's lock");
}

Result<std::shared_ptr<target::Target>> OpenersWorld::attach_when_there_is_a_way() {
  const Place place = site_.places[size_t(place_of_forks_)];  // others come meanwhile
  for (;;) {
    auto attached = site_.agents.attach_for_children(target::make_memory_target(place.directory, place.path), place_of_forks_);
    if (attached.ok() || attached.status().kind() != Kind::timed_out || Schedule::dead()) return attached;
    Schedule::yield(true);
  }
}

// A call is not answered in time and given up, as by a lane that is set aside. What the process asks next there goes over another session, and comes
// after that call: the lane is in use again only once the agent says that it has ended.
void OpenersWorld::come_again(Actor& actor) {
  if (alone_ >= 0 || Schedule::dead()) return;
  constexpr int longest = 8;
  const std::string name = "again-" + std::to_string(actor.process);
  auto before = attach_when_there_is_a_way();
  if (Schedule::dead() || !went_well("attach where a call will be given up", 0, 0, before.status())) return;
  site_.agents.hold_next(place_of_forks_, 1 + int(actor.own() % longest));
  const Status given_up = (*before)->put(name, Bytes(8, std::byte(1)), false);
  coverage_[Seen::calls_given_up] += given_up.kind() == Kind::timed_out;
  before->reset();
  auto after = attach_when_there_is_a_way();
  if (Schedule::dead() || !went_well("attach where a call was given up", 0, 0, after.status())) return;
  if (!went_well("put where a call was given up", 0, 0, (*after)->put(name, Bytes(8, std::byte(2)), false))) return;
  for (int turns = int(actor.own() % 64); turns > 0; --turns) Schedule::yield(true);
  const auto there = (*after)->get(name, 8);
  if (!went_well("get where a call was given up", 0, 0, there.status())) return;
  if ((*there)[0] != std::byte(2)) found("a call that was given up lands after what its process did there next");
  (void)went_well("remove where a call was given up", 0, 0, (*after)->remove(name));
}

void OpenersWorld::count_network() {
  const Agents::Seen seen = site_.agents.seen();
  coverage_[Seen::requests_that_took_long] += seen.slow;
  coverage_[Seen::resets_while_carried_out] += seen.reset_while_carried_out;
  coverage_[Seen::takeovers_that_waited] += seen.waited_for_calls;
  coverage_[Seen::late_requests_refused] += seen.late_refused;
  coverage_[Seen::late_requests_taken] += seen.late_taken;
  coverage_[Seen::sessions_in_place_of_lost_ones] += seen.instead;
  coverage_[Seen::calls_without_a_way] += seen.calls_without_a_way;
  coverage_[Seen::sessions_expired] += seen.expired;
  coverage_[Seen::let_in_after_calls_of_before] += seen.awaited_by_the_next;
}

}  // namespace holdfast::sim
