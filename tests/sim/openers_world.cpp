// What happens to the world: who comes, what breaks, when it ends.
#include "sim/openers_world.hpp"

#include <algorithm>

namespace holdfast::sim {

namespace {

constexpr Setting settings[] = {
    {"mirror:2", layout::Placement::separate, 2}, {"mirror:3", layout::Placement::interleaved, 5},
    {"rs:2+1", layout::Placement::interleaved, 3}, {"rs:2+2", layout::Placement::separate, 5},
    {"rs:4+2", layout::Placement::interleaved, 6},
};
constexpr uint64_t cell_sizes[] = {97, 211, 509};
constexpr uint64_t least_operations = 50;

uint64_t capacity_of(const Setting& setting, uint64_t seed) {
  const uint64_t row = 4096 * uint64_t(layout::Scheme::parse(setting.scheme)->k);
  const uint64_t rows = 3 + seed / 7 % 3 + (seed / 21 % 4 == 3 ? 6 : 0);  // a few are long enough for rows that are fresh for a while
  return row * rows + row / 3;
}

}  // namespace

Setting OpenersWorld::setting_of(uint64_t seed) { return settings[seed % std::size(settings)]; }

OpenersWorld::OpenersWorld(uint64_t seed, Features features)
    : seed_(seed),
      features_(features),
      random_(seed * 0x9E3779B97F4A7C15ull + 1),
      setting_(setting_of(seed)),
      world_(setting_.scheme, setting_.placement, setting_.members),
      model_(capacity_of(setting_, seed), cell_sizes[seed % std::size(cell_sizes)]),
      schedule_(seed, unsigned(seed % 4 * 2)) {
  world_.settings.fast_close = features_.fast_close && one_in(6);
  world_.settings.cb_nodes = int(random(3));
  if (!features_.atomic_power) (features_.power && one_in(2) ? features_.atomic : features_.power) = false;
  if (one_in(3)) world_.settings.buffer_bytes = world_.identity.geometry.row_bytes();
}

std::string OpenersWorld::run() {
  schedule_.when_stuck = [this](const char* why) { found(why); };
  schedule_.add([this] { direct(); });
  schedule_.run();
  return failure_;
}

void OpenersWorld::direct() {
  model_.add_process(0, model_.add_opener());
  make_file();
  while (failure_.empty() && !torn_ && operations_ < least_operations) phase();
  coverage_[Seen::schedules_with_two_writers] += two_writers_;
}

// A new file: empty, or with room reserved, or with bytes in all of it.
void OpenersWorld::make_file() {
  auto solo = exchange::make_solo();
  auto file = world_.open(*solo, true);
  if (!went_well("create", 0, 0, file.status())) return;
  model_.begin_collective(0);
  const uint64_t kind = random(3);
  if (kind == 1) {
    model_.may_grow_to(model_.bytes());
    if (went_well("set_size", 0, model_.bytes(), (*file)->set_size(model_.bytes()))) model_.end_collective(0, true, true, model_.bytes());
    ++coverage_[Seen::holes_preallocated];
  } else if (kind == 2) {
    const uint64_t id = ++writes_;
    Bytes data(model_.bytes());
    for (uint64_t at = 0; at < data.size(); ++at) data[at] = byte_of(id, at);
    for (uint32_t cell = 0; cell < model_.cell_count(); ++cell) model_.begin_write(0, cell, id);
    const Extent whole{0, data.size()};
    (void)went_well("write", 0, data.size(), (*file)->write(std::span(&whole, 1), data));
  }
  model_.begin_collective(0);
  if (went_well("close", 0, 0, (*file)->close())) model_.end_collective(0, true, !world_.settings.fast_close);
}

// Openers and tools come and go for a while, members of a few are hurt; then all is mended and looked at.
void OpenersWorld::phase() {
  stopping_ = false;
  choose_mood();
  victims_.clear();
  const int bears = world_.identity.geometry.scheme.m;
  if (features_.faults && !one_in(3))
    while (int(victims_.size()) < bears && (victims_.empty() || one_in(2))) victims_.push_back(int(random(uint64_t(setting_.members))));
  std::sort(victims_.begin(), victims_.end());
  victims_.erase(std::unique(victims_.begin(), victims_.end()), victims_.end());
  const uint64_t enough = operations_ + 15 + random(least_operations);
  power_fails_ = false;
  while (failure_.empty() && operations_ < enough && !power_fails_) {
    disturb();
    for (uint64_t turns = 1 + random(10); turns > 0 && failure_.empty() && !power_fails_; --turns) Schedule::yield(true);
  }
  power_fails_ |= one_in(3);
  if (failure_.empty() && features_.power && power_fails_) lose_power();
  stopping_ = true;
  wait_for_all();
  if (failure_.empty()) settle_down();
}

void OpenersWorld::choose_mood() {
  mood_ = {};
  if (one_in(3)) mood_.whole_rows = 5;
  if (one_in(3)) mood_.fresh_rows = 6;
  if (one_in(3)) mood_.syncs = random(6);
  if (one_in(4)) mood_.alone = 12;
  if (one_in(4)) mood_.tools = 2;
  if (one_in(4)) mood_.kills = 4;
  mood_.only_repairs = one_in(4);
  if (features_.power && one_in(3)) mood_.power = 6;
}

int OpenersWorld::living_openers() const {
  return int(std::count_if(openers_.begin(), openers_.end(), [](const auto& opener) { return opener->ended < opener->ranks; }));
}

void OpenersWorld::disturb() {
  const int living = living_openers();
  if (living == 0 || (one_in(4) && living < (features_.several ? 4 : 1))) launch_opener();
  else if (features_.tools && one_in(mood_.tools) && tools_.size() < 2) launch_tool();
  else if (features_.kills && one_in(mood_.kills)) kill_somebody();
  else if (one_in(2)) hurt_a_member();
  else if (one_in(3)) parts_ = 2 + random(3), run_ = 1 + random(5) * random(3);
}

void OpenersWorld::launch_opener() {
  if (alone_ >= 0) return;  // somebody cuts the file
  const int number = int(openers_.size());
  openers_.push_back(std::make_unique<Opener>(number, 1 + int(random(3)), !one_in(5), random_()));
  Opener& opener = *openers_.back();
  opener.model = model_.add_opener();
  opener.atomic = opener.writes && (features_.all_atomic || (features_.atomic && one_in(8)));
  for (int rank = 0; rank < opener.ranks; ++rank) {
    const int process = schedule_.add([this, &opener, rank] { run_rank(opener, rank); });
    schedule_.join(opener.group, rank, process);
    model_.add_process(process, opener.model);
    opener.processes.push_back(process);
    processes_.insert(process);
  }
  two_writers_ |= std::count_if(openers_.begin(), openers_.end(), [](const auto& o) { return o->writes && o->ended < o->ranks; }) > 1;
}

void OpenersWorld::launch_tool() {
  const uint64_t what = mood_.only_repairs ? 0 : random(3);
  const int process = schedule_.add([this, what] { run_tool(what); });
  processes_.insert(process);
  tools_.insert(process);
  if (features_.kills && one_in(8)) {
    schedule_.kill_after(process, 1 + int64_t(random(200)));
    ++coverage_[Seen::tools_killed];
  }
}

// A whole job at once, or its first rank, and the others some calls later.
void OpenersWorld::kill_somebody() {
  std::vector<Opener*> living;
  for (auto& opener : openers_)
    if (opener->ended < opener->ranks) living.push_back(opener.get());
  if (living.empty()) return;
  Opener& opener = *living[random(living.size())];
  const int64_t call = 1 + int64_t(random(60));
  const bool first_alone = opener.ranks > 1 && one_in(2);
  for (int rank = 0; rank < opener.ranks; ++rank)
    schedule_.kill_after(opener.processes[rank], rank > 0 && first_alone ? call + 1 + int64_t(random(100)) : call);
  ++coverage_[first_alone ? Seen::first_ranks_killed_alone : Seen::openers_killed];
}

void OpenersWorld::hurt_a_member() {
  hide_sidecar();
  if (victims_.empty()) return;
  const int member = victims_[random(victims_.size())];
  constexpr Kind kinds[] = {Kind::io, Kind::not_found, Kind::no_space, Kind::timed_out};
  const Kind kind = kinds[random(std::size(kinds))];
  switch (random(6)) {
    case 0:
      world_.gate->fail(member, kind);
      ++coverage_[kind == Kind::timed_out ? Seen::members_timed_out : Seen::members_failed];
      break;
    case 1:
      if (processes_.empty()) break;
      world_.gate->fail_on_rank(member, *std::next(processes_.begin(), long(random(processes_.size()))), kind);
      ++coverage_[Seen::members_failed_for_one_process];
      break;
    case 2:
      coverage_[Seen::members_that_came_back] += world_.gate->failing(member);
      world_.gate->heal(member);
      break;
    case 3:
      taken_out_.emplace_back(member, world_.directories[member]);
      world_.replace(member);
      world_.gate->swap(member);
      ++coverage_[Seen::members_replaced];
      break;
    case 4: {  // what was taken out is put back, as old as it is
      auto old = std::find_if(taken_out_.begin(), taken_out_.end(), [&](const auto& entry) { return entry.first == member; });
      if (old == taken_out_.end()) break;
      std::swap(world_.directories[member], old->second);
      world_.gate->swap(member);
      ++coverage_[Seen::members_that_came_back];
      break;
    }
    case 5:
      world_.gate->fail_later(member, 1 + int64_t(random(100)), kind);
      ++coverage_[Seen::members_failed];
      break;
  }
}

// A process that cannot reach the directory of the path knows the file by its members, of which it has to see more than may be lost.
void OpenersWorld::hide_sidecar() {
  if (!features_.sidecar || processes_.empty() || !one_in(3)) return;
  if (setting_.members - int(victims_.size()) <= world_.identity.geometry.scheme.m) return;
  world_.path->hidden_from.insert(*std::next(processes_.begin(), long(random(processes_.size()))));
  ++coverage_[Seen::sidecars_hidden];
}

void OpenersWorld::wait_for_all() {
  while (!processes_.empty()) Schedule::yield(true);
}

// A call came back that promises what no power failure takes: it may come at once.
void OpenersWorld::made_durable() {
  if (mood_.power) power_fails_ |= one_in(mood_.power);
}

// Everybody is gone at once.
void OpenersWorld::lose_power() {
  for (int process : std::set<int>(processes_)) schedule_.kill(process);
  wait_for_all();
  ++coverage_[Seen::power_failures];
  const auto& path = *world_.path;
  coverage_[Seen::power_failures_with_an_unsynced_sidecar] += path.manifest && path.durable && path.manifest->epoch != path.durable->epoch;
  world_.after_crash(random_());
  // After a fast close a power failure may leave rows that are refused.
  torn_ = model_.power_failure() || world_.settings.fast_close;
  last_.push_back({-1, "power failure", 0, 0, torn_ ? "after a fast close" : ""});
}

// Nobody has the file open: what it holds is known, a repair makes it whole, and it holds the same.
void OpenersWorld::settle_down() {
  check_whole("after all had closed");
  for (int member : victims_) world_.gate->heal(member);
  world_.path->hidden_from.clear();
  if (!failure_.empty() || torn_) return;
  check_whole("after the members had come back");
  lose_who_was_well();
  if (!failure_.empty()) return;
  auto located = world_.locate();
  auto report = layers::repair(located, world_.settings, nullptr);
  if (!went_well("the last repair", 0, 0, report.status())) return;
  if (!report->lost_rows.empty()) return found("repair says that row " + std::to_string(report->lost_rows[0]) + " is lost");
  for (const auto& member : report->status.members)
    if (member.state != "ok") return found("after the last repair " + member.path + " is " + member.state + ": " + member.why);
  auto checked = layers::verify(world_.locate(), world_.settings, nullptr);
  if (!went_well("the last verify", 0, 0, checked.status())) return;
  if (checked->finding_count > 0) {
    const auto& first = checked->findings[0];
    return found("verify after the last repair: row " + std::to_string(first.row) + " " + first.what + ": " + first.detail);
  }
  check_whole("after the last repair");
  lose_who_was_well();
}

// Where status calls all members well, any that the scheme can miss may go.
void OpenersWorld::lose_who_was_well() {
  auto status = layers::file_status(world_.locate(), world_.settings);
  if (!failure_.empty() || !went_well("status", 0, 0, status.status())) return;
  if (std::any_of(status->members.begin(), status->members.end(), [](const auto& member) { return member.state != "ok"; })) return;
  std::set<int> lost;
  while (int(lost.size()) < world_.identity.geometry.scheme.m) lost.insert(int(random(uint64_t(setting_.members))));
  for (int member : lost) world_.gate->fail(member, Kind::io);
  check_whole("with members lost that were well");
  for (int member : lost) world_.gate->heal(member);
  ++coverage_[Seen::losses_of_well_members];
}

void OpenersWorld::check_whole(const char* when) {
  auto solo = exchange::make_solo();
  model_.begin_collective(0);
  auto file = world_.open(*solo, false, false);
  if (!went_well(when, 0, 0, file.status())) return;
  model_.end_collective(0, false, false);
  Bytes bytes(model_.bytes());
  const Extent whole{0, bytes.size()};
  auto got = (*file)->read(std::span(&whole, 1), bytes);
  if (went_well(when, 0, 0, got.status())) check_read(when, 0, std::span(&whole, 1), bytes, *got);
}

}  // namespace holdfast::sim
