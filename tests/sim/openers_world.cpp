// What happens to the world: who comes, what breaks, when it ends.
#include "sim/openers_world.hpp"

#include <algorithm>

#include "catalog/catalog.hpp"
#include "catalog/entry.hpp"
#include "catalog/pool.hpp"
#include "engine/repair_file.hpp"

namespace holdfast::sim {

namespace {

constexpr Setting settings[] = {
    {"mirror:2", layout::Placement::separate, 2}, {"mirror:3", layout::Placement::interleaved, 5}, {"rs:2+1", layout::Placement::interleaved, 3},
    {"rs:2+2", layout::Placement::separate, 5},   {"rs:4+2", layout::Placement::interleaved, 6},   {"mirror:3", layout::Placement::separate, 4},
};
constexpr Setting single_settings[] = {{"mirror:2", layout::Placement::separate, 2}, {"rs:2+1", layout::Placement::separate, 3}};
constexpr uint64_t cell_sizes[] = {97, 211, 509};
constexpr uint64_t least_operations = 50;

uint64_t capacity_of(const Setting& setting, uint64_t seed, bool harsh) {
  const uint64_t row = 4096 * uint64_t(layout::Scheme::parse(setting.scheme)->k);
  if (harsh) return row * (1 + seed / 7 % 3) + (seed / 21 % 2 ? row / 3 : 0);
  const uint64_t rows = 3 + seed / 7 % 3 + (seed / 21 % 4 == 3 ? 6 : 0);  // a few are long enough for rows that are fresh for a while
  return row * rows + row / 3;
}

// Rows go round all of the members.
Setting wide_setting(const char* scheme, uint64_t seed) { return {scheme, layout::Placement::interleaved, 65 + int(seed % 40)}; }
// Those that have something of the first rows.
constexpr uint64_t hurt_of_wide = 16;

bool is_plain(catalog::PathKind kind) { return kind == catalog::PathKind::plain || kind == catalog::PathKind::empty; }

}  // namespace

OpenersWorld::Way OpenersWorld::way_of(uint64_t seed) {
  if (seed % 12 == 11) return {single_settings[seed / 12 % std::size(single_settings)], true};
  return {settings[seed % std::size(settings)]};
}

OpenersWorld::OpenersWorld(uint64_t seed, Features features)
    : seed_(seed),
      features_(features),
      random_(seed * 0x9E3779B97F4A7C15ull + 1),
      way_(way_of(seed)),
      model_(capacity_of(way_.setting, seed, features.harsh), cell_sizes[seed % std::size(cell_sizes)]),
      schedule_(seed, unsigned(seed % 4 * 2)) {
  if (features_.wide && !way_.single) way_.setting = wide_setting(way_.setting.scheme, seed);
  simulated_clock.begin_anew();
  settings_.protect = way_.setting.scheme;
  settings_.placement = layout::placement_name(way_.setting.placement);
  settings_.striping_unit = 4096;
  settings_.allow_shared_target = way_.single;
  for (int member = 0; member < way_.setting.members && !way_.single; ++member) {
    places_.push_back(site_.add_place("/t" + std::to_string(member)));
    (features_.pools ? settings_.local : settings_.targets).push_back(site_.places.back().path);
  }
  if (features_.pools && !way_.single) settings_.striping_factor = way_.setting.members;  // the file lies on all of them
  site_.by_agents = features_.agents;
  if (features_.agents) site_.agents.begin_weather(seed);
  if (features_.network) {
    site_.agents.begin_network([this](std::function<void()> what) { schedule_.add(std::move(what)); });
    place_of_forks_ = site_.add_place("/forks");
    site_.gate->when_busy = [this] {
      coverage_[Seen::found_busy_beside_a_stopped_one] +=
          std::any_of(processes_.begin(), processes_.end(), [this](int process) { return schedule_.is_stopped(process); });
    };
  }
  site_.gate->far = features_.far;
  site_.gate->moves = features_.moves || seed / 12 % 4 == 3;
  if (features_.nodes && one_in(3)) site_.nodes = 2, ++coverage_[Seen::schedules_on_nodes];
  settings_.fast_close = features_.fast_close && one_in(6);
  settings_.cb_nodes = int(random(3));
  if (!features_.atomic_power) (features_.power && one_in(2) ? features_.atomic : features_.power) = false;
  if (features_.harsh ? !one_in(3) : one_in(3)) settings_.buffer_bytes = 4096 * uint64_t(layout::Scheme::parse(way_.setting.scheme)->k);
}

std::string OpenersWorld::run() {
  schedule_.when_stuck = [this](const char* why) { found(why); };
  schedule_.add([this] { direct(); });
  schedule_.run();
  return failure_;
}

void OpenersWorld::direct() {
  model_.add_process(0, model_.add_opener());
  if (!settings_.local.empty())
    if (const auto pool = catalog::open_pool(settings_); !pool.ok()) return found("the pool cannot be opened: " + pool.status().sentence());
  make_file();
  if (!way_.single && features_.replacements && seed_ % 3 == 0) make_still_file();
  while (failure_.empty() && !torn_ && operations_ < least_operations) phase();
  coverage_[Seen::schedules_with_two_writers] += two_writers_;
  coverage_[Seen::connections_reset] += site_.agents.resets();
  coverage_[Seen::sums_of_agents] += site_.agents.sums();
  if (features_.network) count_network();
}

// Before: one or two create it at once, and may be killed while they do.
void OpenersWorld::create_in_a_crowd() {
  for (uint64_t i = 1 + random(2); i > 0; --i) {
    const int process = schedule_.add([this, opens = one_in(2)] {
      auto located = catalog::create(path, settings_, 0644, opens && site_.gate->moves);
      auto solo = exchange::make_solo();
      if (located.ok() && opens) {
        auto file = File::open(std::move(*located), {true, true, true}, settings_, *solo);
        if (file.ok()) (void)(*file)->close();
      }
      processes_.erase(Schedule::current_rank());
    });
    processes_.insert(process);
    if (!features_.kills || one_in(4)) continue;
    schedule_.kill_after(process, 1 + int64_t(random(200)));
    ++coverage_[Seen::creators_killed];
  }
  litter_ = true;
  if (!power_fails_within(300)) return wait_for_all();
  ++coverage_[Seen::power_failures_while_created];
  const auto found = locate();
  if (found.status().kind() != Kind::not_found && !is_plain_after_removal())
    (void)went_well("find what was created before a power failure", 0, 0, found.status());
}

// In one directory: a removal was killed, and the power failure brought the data back without what protected them.
bool OpenersWorld::is_plain_after_removal() const { return way_.single && half_removed_ > 0 && is_plain(catalog::kind_of(path)); }

// Everything stops at some moment of what is going on, or a little after it.
bool OpenersWorld::power_fails_within(uint64_t turns) {
  if (!features_.power || !one_in(3)) return false;
  for (uint64_t left = random(turns); left > 0; --left) Schedule::yield(true);
  cut_power();
  return true;
}

// A new file: empty, or with room reserved, or with bytes in all of it.
void OpenersWorld::make_file() {
  if (one_in(3)) create_in_a_crowd();
  auto solo = exchange::make_solo();
  auto located = catalog::create(path, settings_, 0644, site_.gate->moves);
  const bool made = located.ok();
  if (located.status().kind() == Kind::exists) located = locate();
  if (!located.ok() && is_plain_after_removal()) {
    unlink_at_path();
    return make_file();
  }
  if (!went_well(made ? "create" : "find what was created", 0, 0, located.status())) return;
  geometry_ = located->manifest.geometry;
  if (located->manifest.pool)  // each file has an order of its own
    for (size_t member = 0; member < places_.size(); ++member) places_[member] = site_.place_at(located->manifest.members[member].path);
  const std::string model_file = located->manifest.file_id;
  // A removal that was killed is undone by a power failure while others create the file anew: it is the old one, and goes again.
  if (!made && model_file == file_id_) {
    if (went_well("rm of what came back", 0, 0, catalog::remove(path, settings_))) make_file();
    return;
  }
  coverage_[Seen::single_directories] += way_.single;
  coverage_[Seen::links_at_the_path] += catalog::look_at_entry(path).kind == catalog::EntryKind::own_link;
  auto file = File::open(std::move(*located), {true, true, made}, settings_, *solo);
  // What was found on the targets may be half of a file whose removal was cut short; the operator removes the rest of it.
  if (!file.ok() && half_removed_ > 0) {
    --half_removed_;
    if (went_well("rm of what was half removed", 0, 0, catalog::remove(path, settings_))) make_file();
    return;
  }
  half_removed_ = 0;
  file_id_ = model_file;
  if (!went_well("first open", 0, 0, file.status())) return;
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
  if (went_well("close", 0, 0, (*file)->close())) model_.end_collective(0, true, !settings_.fast_close);
}

// Openers and tools come and go for a while, members of a few are hurt; then all is mended and looked at.
void OpenersWorld::phase() {
  stopping_ = false;
  choose_mood();
  victims_.clear();
  const int bears = geometry_.scheme.m;
  cuts_off_ = features_.network && !way_.single && one_in(3);
  if (features_.faults && !cuts_off_ && !way_.single && !one_in(features_.harsh ? 6 : 3))
    while (int(victims_.size()) < bears && (features_.harsh || victims_.empty() || one_in(2)))
      victims_.push_back(int(random(features_.wide && !one_in(4) ? hurt_of_wide : uint64_t(way_.setting.members))));
  std::sort(victims_.begin(), victims_.end());
  victims_.erase(std::unique(victims_.begin(), victims_.end()), victims_.end());
  const uint64_t enough = operations_ + 15 + random(least_operations);
  power_fails_ = false;
  while (failure_.empty() && operations_ < enough && !power_fails_) {
    disturb();
    for (uint64_t turns = 1 + random(10); turns > 0 && failure_.empty() && !power_fails_; --turns) Schedule::yield(true);
  }
  power_fails_ |= one_in(3);
  power_failed_ = failure_.empty() && features_.power && power_fails_;
  if (power_failed_) lose_power();
  stopping_ = true;
  wait_for_all();
  if (failure_.empty() && !torn_ && features_.replacements && !way_.single && one_in(3)) replace_in_peace();
  if (failure_.empty()) settle_down();
  if (failure_.empty() && !torn_ && features_.removals && one_in(6)) remove_file();
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
  if (features_.harsh) choose_harsh_mood();
}

void OpenersWorld::choose_harsh_mood() {
  const auto one_of = [this](std::initializer_list<uint64_t> values) { return *(values.begin() + random(values.size())); };
  mood_.whole_rows = one_of({0, 2, 5, 8});
  mood_.fresh_rows = one_of({0, 0, 6});
  mood_.syncs = 2 + random(10);
  mood_.alone = 1 + random(20);
  mood_.comers = one_of({2, 4});
  mood_.tools = 2 + random(4);
  mood_.kills = one_of({4, 15, 60});
  mood_.hurts = 1 + random(3);
  mood_.kills_within = one_of({6, 20, 60, 200});
  mood_.fails_within = one_of({10, 30, 100, 300});
  if (features_.power) mood_.power = one_of({0, 0, 4, 12});
}

int OpenersWorld::living_openers() const {
  return int(std::count_if(openers_.begin(), openers_.end(), [](const auto& opener) { return opener->ended < opener->ranks; }));
}

void OpenersWorld::disturb() {
  const int living = living_openers();
  if (living == 0 || (one_in(mood_.comers) && living < (features_.several ? 4 : 1))) launch_opener();
  else if (features_.network && one_in(2)) trouble_the_network();
  else if (features_.tools && one_in(mood_.tools) && tools_.size() < 2) launch_tool();
  else if (features_.kills && one_in(mood_.kills)) kill_somebody();
  else if (one_in(mood_.hurts)) hurt_a_member();
  else if (one_in(3)) parts_ = 2 + random(3), run_ = 1 + random(5) * random(3);
}

// ranks: 0 leaves it to the seed. `begins`: what each process does before it opens the file.
void OpenersWorld::launch_opener(int ranks, const std::function<void()>& begins) {
  if (alone_ >= 0) return;  // somebody cuts the file
  const int number = int(openers_.size());
  openers_.push_back(std::make_unique<RunningOpener>(number, ranks ? ranks : 1 + int(random(3)), !one_in(5), random_()));
  RunningOpener& opener = *openers_.back();
  opener.model = model_.add_opener();
  opener.atomic = opener.writes && (features_.all_atomic || (features_.atomic && one_in(features_.harsh ? 3 : 8)));
  for (int rank = 0; rank < opener.ranks; ++rank) {
    const int process = schedule_.add([this, &opener, rank, begins] {
      if (begins) begins();
      run_rank(opener, rank);
    });
    schedule_.join(opener.group, rank, process);
    model_.add_process(process, opener.model);
    opener.processes.push_back(process);
    processes_.insert(process);
  }
  two_writers_ |= std::count_if(openers_.begin(), openers_.end(), [](const auto& o) { return o->writes && o->ended < o->ranks; }) > 1;
}

void OpenersWorld::launch_tool() {
  const uint64_t what = mood_.only_repairs || one_in(4) ? 0 : random(features_.replacements && !way_.single ? 6 : 4);
  if (what == export_tool && alone_ >= 0) return;  // somebody cuts the file
  exporting_ += what == export_tool;
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
  std::vector<RunningOpener*> living;
  for (auto& opener : openers_)
    if (opener->ended < opener->ranks) living.push_back(opener.get());
  if (living.empty()) return;
  RunningOpener& opener = *living[random(living.size())];
  const int64_t call = 1 + int64_t(random(mood_.kills_within));
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
  const auto fresh = fresh_.find(member);
  hurt_place(fresh != fresh_.end() && one_in(2) ? fresh->second : places_[size_t(member)], kind);
}

void OpenersWorld::hurt_place(int place, Kind kind) {
  auto note = [&](const char* what, const std::string& how = "") { last_.push_back({-1, what, uint64_t(place), uint64_t(place) + 1, how}); };
  switch (random(features_.agents ? 9 : 6)) {
    case 0:
      site_.gate->fail(place, kind);
      note("fails: place", kind_name(kind));
      ++coverage_[kind == Kind::timed_out ? Seen::members_timed_out : Seen::members_failed];
      break;
    case 1: {
      if (processes_.empty()) break;
      const int process = *std::next(processes_.begin(), long(random(processes_.size())));
      site_.gate->fail_on_rank(place, process, kind);
      note("fails for a process: place", std::string(kind_name(kind)) + " for " + std::to_string(process));
      ++coverage_[Seen::members_failed_for_one_process];
      break;
    }
    case 2:
      coverage_[Seen::members_that_came_back] += site_.gate->failing(place);
      site_.heal(place);
      note("is healed: place");
      break;
    case 3:
      taken_out_.emplace_back(place, site_.empty_place(place));
      note("is emptied: place");
      ++coverage_[Seen::members_replaced];
      break;
    case 4: {  // what was taken out is put back, as old as it is
      auto old = std::find_if(taken_out_.begin(), taken_out_.end(), [&](const auto& entry) { return entry.first == place; });
      if (old == taken_out_.end()) break;
      site_.put_back(place, std::exchange(old->second, site_.places[size_t(place)].directory));
      note("has its old disk again: place");
      ++coverage_[Seen::members_that_came_back];
      break;
    }
    case 5:
      site_.gate->fail_later(place, 1 + int64_t(random(mood_.fails_within)), kind);
      note("will fail: place", kind_name(kind));
      ++coverage_[Seen::members_failed];
      break;
    case 6:
      site_.agents.restart(place);
      note("has its agent started again: place");
      ++coverage_[Seen::agents_restarted];
      break;
    default:
      site_.agents.lose_a_session(place, 1 + int64_t(random(100)));
      note("will lose a session: place");
      ++coverage_[Seen::sessions_lost];
  }
}

// A process that cannot reach the directory of the path knows the file by its members, of which it has to see more than may be lost.
void OpenersWorld::hide_sidecar() {
  if (!features_.sidecar || way_.single || cuts_off_ || reachable_.empty() || !one_in(3)) return;
  if (way_.setting.members - int(victims_.size()) <= geometry_.scheme.m) return;
  site_.hidden_from.insert(*std::next(reachable_.begin(), long(random(reachable_.size()))));
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
void OpenersWorld::cut_power() {
  site_.lose_nodes();
  if (features_.network) site_.agents.restart_all();
  for (int process : std::set<int>(processes_)) schedule_.kill(process);
  wait_for_all();
  ++coverage_[Seen::power_failures];
  coverage_[Seen::power_failures_with_unsynced_names] += site_.tree.has_unsynced_names();
  site_.power_loss(random_());
}

void OpenersWorld::lose_power() {
  cut_power();
  // After a fast close a power failure may leave rows that are refused.
  torn_ = model_.power_failure() || settings_.fast_close;
  last_.push_back({-1, "power failure", 0, 0, torn_ ? "after a fast close" : ""});
}

// Nobody has the file open: what it holds is known, a repair makes it whole, and it holds the same.
void OpenersWorld::settle_down() {
  site_.agents.mend_ways();
  check_whole("after all had closed");
  for (size_t place = 0; place < site_.places.size(); ++place) site_.heal(int(place));
  site_.hidden_from.clear();
  if (!failure_.empty() || torn_) return;
  check_whole("after the members had come back");
  make_members_whole();
  if (!failure_.empty()) return;
  // A power failure may leave members behind by commits that were not durable, until somebody writes or repairs.
  if (!power_failed_) lose_who_was_well();
  if (!failure_.empty()) return;
  auto report = engine::repair_file(path, {}, false, settings_, nullptr);
  if (!went_well("the last repair", 0, 0, report.status())) return;
  if (!report->lost_rows.empty()) return found("repair says that row " + std::to_string(report->lost_rows[0]) + " is lost");
  for (const auto& member : report->status.members)
    if (member.state != "ok") return found("after the last repair " + member.path + " is " + member.state + ": " + member.why);
  auto located = locate();
  if (!went_well("the last locate", 0, 0, located.status())) return;
  take_stock(*located);
  auto checked = engine::verify(*located, settings_, nullptr);
  if (!went_well("the last verify", 0, 0, checked.status())) return;
  if (checked->finding_count > 0) {
    const auto& first = checked->findings[0];
    return found("verify after the last repair: row " + std::to_string(first.row) + " " + first.what + ": " + first.detail);
  }
  check_whole("after the last repair");
  lose_who_was_well();
  if (still_file_ && failure_.empty()) mend_still_file();
}

// Where status calls all members well, any that the scheme can miss may go.
void OpenersWorld::lose_who_was_well() {
  auto located = locate();
  if (!failure_.empty() || !went_well("locate for status", 0, 0, located.status())) return;
  auto status = engine::file_status(*located, settings_);
  if (!went_well("status", 0, 0, status.status())) return;
  if (way_.single || std::any_of(status->members.begin(), status->members.end(), [](const auto& member) { return member.state != "ok"; })) return;
  std::set<int> lost;
  while (int(lost.size()) < geometry_.scheme.m) lost.insert(places_[random(places_.size())]);
  for (int place : lost) site_.gate->fail(place, Kind::io);
  check_whole("with members lost that were well");
  for (int place : lost) site_.heal(place);
  ++coverage_[Seen::losses_of_well_members];
}

// What an operator does who finds members gone: a new directory in the place of each. What was begun is ended, or given up.
void OpenersWorld::make_members_whole() {
  for (int member = 0; member < int(places_.size()) && failure_.empty(); ++member) {
    auto located = locate();
    if (!went_well("locate", 0, 0, located.status())) return;
    const auto& now = located->manifest.members[size_t(member)].path;
    if (located->members[size_t(member)].usable()) continue;
    const int place = site_.place_at(now);
    const bool emptied = site_.places[size_t(place)].directory->object_names().empty();
    const auto begun = fresh_.find(member);
    int onto = place;
    if (begun != fresh_.end() && begun->second != place && one_in(2)) onto = begun->second;
    else if (!emptied || one_in(2)) onto = site_.add_place("/n" + std::to_string(site_.places.size()));
    const std::vector<std::string> in_set = members_of_set();
    if (in_set.size() != places_.size()) return found("no member leads to the target set");
    const std::string old_path = in_set[size_t(member)];  // where a replacement was cut short, not the one that the file names
    if (onto == place && old_path != now) onto = site_.add_place("/n" + std::to_string(site_.places.size()));
    auto report = engine::repair_file(path, {{old_path, site_.places[size_t(onto)].path}}, false, settings_, nullptr);
    if (!went_well("the last repair --replace", uint64_t(place), uint64_t(onto), report.status())) return;
    if (!report->lost_rows.empty()) found("repair --replace says that row " + std::to_string(report->lost_rows[0]) + " is lost");
  }
}

// As `holdfast targets` names them.
std::vector<std::string> OpenersWorld::members_of_set(std::set<int>* lost) {
  std::vector<std::string> paths;
  if (features_.pools) {  // there the file alone knows
    if (const auto located = locate(); located.ok())
      for (const auto& member : located->members) {
        paths.push_back(located->manifest.members[size_t(member.index)].path);
        if (lost && !member.usable()) lost->insert(member.index);
      }
    return paths;
  }
  for (const int place : places_)
    if (auto set = catalog::open_set({site_.places[size_t(place)].path}, settings_)) {
      for (const auto& member : set->members) {
        paths.push_back(member.path);
        if (lost && !member.usable()) lost->insert(member.index);
      }
      break;
    }
  return paths;
}

// `repair --replace` of any member, hurt or not, while as many are hurt as may be. That it cannot be done now is no finding; the file is
// as before.
void OpenersWorld::replace_in_peace() {
  const int member = int(random(places_.size()));
  const int place = places_[size_t(member)];
  const auto [begun, first] = fresh_.try_emplace(member, -1);
  if (first) begun->second = onto_new_place(place);
  const engine::Replacement asked{site_.places[size_t(place)].path, site_.places[size_t(begun->second)].path};
  auto report = engine::repair_file(path, {asked}, false, settings_, nullptr);
  last_.push_back({0, "repair --replace in peace", uint64_t(place), uint64_t(begun->second), report.status().ok() ? "" : report.status().sentence()});
  ++coverage_[Seen::replacements_in_peace];
  check_whole("after a replacement");
  if (still_file_) check_still_file("after a replacement");
}

// The member's own place where it is empty, or another one.
int OpenersWorld::onto_new_place(int place) {
  litter_ = true;  // on the one that is replaced
  const bool emptied = site_.places[size_t(place)].directory->object_names().empty();
  return emptied && one_in(2) ? place : site_.add_place("/n" + std::to_string(site_.places.size()));
}

void OpenersWorld::make_still_file() {
  auto solo = exchange::make_solo();
  auto located = catalog::create(still_path, settings_, 0644);
  if (!went_well("create another", 0, 0, located.status())) return;
  auto file = File::open(std::move(*located), {true, true, true}, settings_, *solo);
  if (!went_well("first open of another", 0, 0, file.status())) return;
  Bytes data(geometry_.row_bytes() * 2 + 100);
  for (uint64_t at = 0; at < data.size(); ++at) data[at] = byte_of(7, at);
  const Extent whole{0, data.size()};
  still_file_ = went_well("write another", 0, 0, (*file)->write(std::span(&whole, 1), data)) && went_well("sync another", 0, 0, (*file)->sync()) &&
                went_well("close another", 0, 0, (*file)->close());
}

void OpenersWorld::check_still_file(const char* when) {
  auto solo = exchange::make_solo();
  auto located = catalog::locate(still_path, settings_);
  if (!went_well("locate another", 0, 0, located.status())) return;
  auto file = File::open(std::move(*located), {true, false, false}, settings_, *solo);
  if (!went_well("open another", 0, 0, file.status())) return;
  Bytes data(geometry_.row_bytes() * 2 + 100);
  const Extent whole{0, data.size()};
  auto got = (*file)->read(std::span(&whole, 1), data);
  if (!went_well("read another", 0, 0, got.status())) return;
  for (uint64_t at = 0; at < data.size(); ++at)
    if (at >= *got || data[at] != byte_of(7, at)) return found(std::string("the other file is wrong ") + when + " at byte " + std::to_string(at));
}

// The set has been told of new members with the first file; a repair takes this one there.
void OpenersWorld::mend_still_file() {
  check_still_file("after all had closed");
  auto located = catalog::locate(still_path, settings_);
  std::set<int> lost_of_set;
  const std::vector<std::string> in_set = members_of_set(&lost_of_set);
  if (!went_well("locate another", 0, 0, located.status()) || in_set.size() != places_.size()) return;
  std::vector<engine::Replacement> asked;  // where the first file's was cut short, or this one's member went with it
  for (size_t member = 0; member < places_.size(); ++member) {
    const std::string& onto = site_.places[size_t(places_[member])].path;
    if (!located->members[member].usable() && (onto != in_set[member] || lost_of_set.contains(int(member)))) asked.push_back({in_set[member], onto});
  }
  // Where all of its own targets were replaced, nothing there leads to the new ones: the operator names them.
  Settings naming = settings_;
  naming.targets = in_set;
  auto report = engine::repair_file(still_path, asked, false, naming, nullptr);
  if (!went_well("the last repair of another", 0, 0, report.status())) return;
  for (const auto& member : report->status.members)
    if (member.state != "ok")
      return found("after the last repair of another file " + member.path + " is " + member.state + ": " + member.why +
                   (report->left.empty() ? "" : "; " + report->left[0]));
  ++coverage_[Seen::second_files_mended];
  check_still_file("after the last repair");
}

// Where the members are after a phase; what stands in the places of former ones no longer counts.
void OpenersWorld::take_stock(const catalog::Located& located) {
  for (size_t member = 0; member < places_.size(); ++member) {
    const int place = site_.place_at(located.manifest.members[member].path);
    if (place == places_[member]) continue;
    ++coverage_[Seen::replacements_done];
    places_[member] = place;
  }
  fresh_.clear();
}

// `holdfast rm`, and another file of the same name.
void OpenersWorld::remove_file() {
  // Where a replacement was cut short the set has still to be told of it: what is made next would begin its life degraded.
  std::set<int> lost;
  const std::vector<std::string> in_set = members_of_set(&lost);
  if (!lost.empty() || in_set.size() != places_.size()) return;
  while (failure_.empty() && !remove_once()) {
  }
  if (!failure_.empty()) return;
  (features_.pools ? settings_.local : settings_.targets) = in_set;
  for (size_t member = 0; member < places_.size(); ++member) places_[member] = site_.place_at(in_set[member]);
  model_ = OpenersModel(capacity_of(way_.setting, seed_, features_.harsh), cell_sizes[seed_ % std::size(cell_sizes)]);
  openers_.clear();
  model_.add_process(0, model_.add_opener());
  make_file();
}

// False where it was cut short and nothing of it has come about.
bool OpenersWorld::remove_once() {
  bool done = false;
  const int process = schedule_.add([this, &done] {
    if (went_well("rm", 0, 0, catalog::remove(path, settings_))) done = true;
    processes_.erase(Schedule::current_rank());
  });
  processes_.insert(process);
  if (features_.kills && one_in(3)) schedule_.kill_after(process, 1 + int64_t(random(60)));
  if (settings_.fast_close || !power_fails_within(100)) wait_for_all();
  else ++coverage_[Seen::power_failures_while_removed];
  if (!failure_.empty()) return true;
  litter_ |= !done;
  half_removed_ = litter_ ? 3 : 0;
  if (done) {
    ++coverage_[Seen::removals];
    check_removed();
    return true;
  }
  ++coverage_[Seen::removals_cut_short];
  if (catalog::kind_of(path) == catalog::PathKind::absent) {
    check_half_removed();
    return true;
  }
  ++coverage_[Seen::files_whole_after_that];
  if (const bool plain = is_plain(catalog::kind_of(path)); way_.single && plain) {
    check_plain();
    unlink_at_path();
    return true;
  }
  check_whole("after a removal that was cut short");
  return false;
}

// In one directory the file at the path holds the data: where its sidecar alone has gone it is a plain one, and whole.
void OpenersWorld::check_plain() {
  InodePtr file = site_.tree.find(*site_.tree.find(*site_.tree.root(), "data"), "out.dat");
  Bytes bytes(model_.bytes());
  const uint64_t got = file->now.read(0, bytes);
  const Extent whole{0, bytes.size()};
  check_read("read of what is plain after a removal", 0, std::span(&whole, 1), bytes, got);
}

void OpenersWorld::unlink_at_path() {
  Inode& data = *site_.tree.find(*site_.tree.root(), "data");
  site_.tree.remove(data, "out.dat");
  site_.tree.sync(data);  // the operator's own rm: a power failure that brought it back would be no finding
}

void OpenersWorld::check_removed() {
  if (catalog::kind_of(path) != catalog::PathKind::absent) return found("after rm something is at the path");
  for (const auto& [name, node] : site_.tree.find(*site_.tree.root(), "data")->entries)
    if (name.find("out.dat") != std::string::npos) return found("after rm something is beside the path: " + name);
  // Of what was cut short before, something may be on the targets; whoever names them finds it.
  if (litter_) return;
  if (const auto there = locate(); there.status().kind() != Kind::not_found) found("after rm the file is found: " + there.status().sentence());
}

// Whoever names its targets may still find it there, and it may be refused; what can be read is right.
void OpenersWorld::check_half_removed() {
  auto solo = exchange::make_solo();
  auto located = locate();
  if (!located.ok() || located->manifest.file_id != file_id_) return;
  auto file = File::open(std::move(*located), {true, false, false}, settings_, *solo);
  if (!file.ok()) return;
  Bytes bytes(model_.bytes());
  const Extent whole{0, bytes.size()};
  auto got = (*file)->read(std::span(&whole, 1), bytes);
  if (got.ok()) check_read("read of a file that is half removed", 0, std::span(&whole, 1), bytes, *got);
}

Result<catalog::Located> OpenersWorld::locate() { return catalog::locate(path, settings_); }

// As the front end does it: each rank finds the file by itself, and nobody opens it where one has not found it.
Result<std::unique_ptr<OpenersWorld::File>> OpenersWorld::open(exchange::Exchange& ranks, bool write) {
  auto located = locate();
  const bool all = ranks.all_max({!located})[0] == 0;
  if (!located) return located.status();
  if (!all) return Status(Kind::internal, "another rank has not found the file");
  if (processes_.contains(Schedule::current_rank())) reachable_.insert(Schedule::current_rank());
  return File::open(std::move(*located), {true, write, false}, settings_, ranks);
}

void OpenersWorld::check_whole(const char* when) {
  auto solo = exchange::make_solo();
  model_.begin_collective(0);
  auto file = open(*solo, false);
  if (!went_well(when, 0, 0, file.status())) return;
  model_.end_collective(0, false, false);
  Bytes bytes(model_.bytes());
  const Extent whole{0, bytes.size()};
  auto got = (*file)->read(std::span(&whole, 1), bytes);
  if (went_well(when, 0, 0, got.status())) check_read(when, 0, std::span(&whole, 1), bytes, *got);
}

}  // namespace holdfast::sim
