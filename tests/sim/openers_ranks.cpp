// What the processes of openers do, and the tools beside them.
#include <algorithm>

#include "catalog/catalog.hpp"
#include "engine/plausible.hpp"
#include "engine/repair_file.hpp"
#include "sim/openers_actor.hpp"

namespace holdfast::sim {

namespace {
// A process that is in a commit.
struct Committing {
  explicit Committing(std::multiset<int>& all) : all(all), me(all.insert(Schedule::current_rank())) {}
  ~Committing() { all.erase(me); }
  std::multiset<int>& all;
  const std::multiset<int>::iterator me;
};
}  // namespace

// --- what was told, and what is found

bool OpenersWorld::went_well(const char* what, uint64_t from, uint64_t to, const Status& status) {
  const int process = Schedule::current_rank();
  ++operations_;
  ++coverage_[Seen::operations];
  last_.push_back({process, what, from, to, Schedule::dead() ? "dead" : status.ok() ? "" : status.sentence()});
  if (last_.size() > 400) last_.pop_front();
  if (Schedule::dead()) return false;
  const bool refused = std::string_view(what).starts_with("read") && status.kind() == Kind::lost &&
                       (features_.refusals || is_contested(from, to) || has_lost_a_rank(process));
  if (!site_.agents.wrong().empty()) found(site_.agents.wrong());
  const bool cut_off = !status.ok() && is_cut_off(process);
  coverage_[Seen::calls_of_who_was_cut_off] += cut_off;
  if (!status.ok() && !torn_ && !refused && !cut_off)
    found(std::string(what) + " of process " + std::to_string(process) + " failed: " + status.sentence());
  return status.ok();
}

// Whether rows that these bytes lie in are of two who wrote them at once, whole perhaps: such a row can be refused until it is synced.
bool OpenersWorld::is_contested(uint64_t from, uint64_t to) const {
  const uint64_t row = geometry_.row_bytes();
  return model_.is_contested(std::min(from, to) / row * row, round_up(std::max(from, to), row));
}

// What a rank was writing when it was killed, the others of its job cannot tell from what it goes on writing: with M members lost such a row may
// be refused to them until the next opener, for which it was never synced.
bool OpenersWorld::has_lost_a_rank(int process) const {
  for (const auto& opener : openers_) {
    const auto& ranks = opener->processes;
    if (std::find(ranks.begin(), ranks.end(), process) == ranks.end()) continue;
    return std::any_of(ranks.begin(), ranks.end(), [&](int rank) { return schedule_.is_dead(rank); });
  }
  return false;
}

void OpenersWorld::found(const std::string& what) {
  if (Schedule::dead()) return;
  if (failure_.empty()) failure_ = what;
  stopping_ = true;
  for (int process : processes_) schedule_.kill(process);  // nothing after it means anything
}

std::string OpenersWorld::last_operations() const {
  std::string text;
  for (const Entry& entry : last_) {
    text += "  process " + std::to_string(entry.process);
    const int opener = entry.process >= 0 ? model_.opener_of(entry.process) : -1;
    if (opener >= 0) text += " of opener " + std::to_string(opener);
    text += std::string(": ") + entry.what;
    if (entry.to) text += " " + std::to_string(entry.from) + " to " + std::to_string(entry.to);
    text += (entry.outcome.empty() ? "" : ": " + entry.outcome) + "\n";
  }
  return text + "What lies there:\n" + site_.listing();
}

// --- which bytes

// Where a write begins: anywhere, or rather at a row that nobody has written.
uint64_t OpenersWorld::choose_row(Random& random) const {
  const uint64_t row = geometry_.row_bytes(), rows = std::max<uint64_t>(model_.bytes() / row, 1);
  std::vector<uint64_t> fresh;
  if (random() % 8 < mood_.fresh_rows)
    for (uint64_t number = 0; number < rows; ++number)
      if (model_.is_hole(uint32_t((number * row + row / 2) / model_.cell_bytes()))) fresh.push_back(number);
  return fresh.empty() ? random() % rows : fresh[random() % fresh.size()];
}

// Cells that the process may write now: dealt out in turns with others, or a piece, or whole rows.
std::vector<uint32_t> OpenersWorld::choose_cells(Random& random, int process) {
  const uint64_t row = geometry_.row_bytes(), cell_bytes = model_.cell_bytes(), cells = model_.cell_count();
  const uint64_t first_row = choose_row(random);
  const uint64_t shape = random() % 8 < mood_.whole_rows ? 0 : 1 + random() % 3;
  uint64_t from, to, parts = 1, mine = 0;
  if (shape == 0) {  // whole rows
    from = first_row * row / cell_bytes;
    to = ((first_row + 1 + random() % 2) * row + cell_bytes - 1) / cell_bytes;
  } else if (shape == 1) {
    from = random() % cells;
    to = from + 1 + random() % std::max<uint64_t>(row / 3 / cell_bytes, 1);
  } else {  // in turns with others
    from = first_row * row / cell_bytes;
    to = (first_row + 1 + random() % 3) * row / cell_bytes;
    parts = parts_;
    mine = (uint64_t(process) + random() % 8 / 7) % parts;
  }
  const bool overlap = features_.overlaps && random() % 64 == 0;
  std::vector<uint32_t> chosen;
  for (uint64_t cell = from; cell < std::min(to, cells); ++cell) {
    if (cell / run_ % parts != mine || (cell + 1) * cell_bytes > size_limit_) continue;
    if (model_.may_write(process, uint32_t(cell)) || overlap) chosen.push_back(uint32_t(cell));
  }
  return chosen;
}

std::vector<Extent> OpenersWorld::extents_of(std::vector<uint32_t> cells, Random& random) const {
  std::vector<Extent> extents;
  for (uint32_t cell : cells) {
    const uint64_t at = cell * model_.cell_bytes();
    if (!extents.empty() && extents.back().end() == at) extents.back().length += model_.cell_bytes();
    else extents.push_back({at, model_.cell_bytes()});
  }
  if (random() % 8 == 0) std::shuffle(extents.begin(), extents.end(), random);
  return extents;
}

// --- operations

// A collective write goes on in rounds until no rank has more.
void OpenersWorld::write(Actor& actor, bool collective, uint64_t rounds) {
  for (bool more = true; more;) {
    const bool none = rounds == 0 || (collective && actor.own() % 5 == 0);
    if (rounds > 0) --rounds;
    const std::vector<uint32_t> cells = none ? std::vector<uint32_t>() : choose_cells(actor.own, actor.process);
    const std::vector<Extent> extents = extents_of(cells, actor.own);
    const uint64_t id = ++writes_;
    begin_write(actor, cells, id);
    Bytes data;
    for (const Extent& extent : extents) append_write(data, id, extent);
    const bool asked = more = rounds > 0;
    if (collective) coverage_[Seen::collective_writes_beside_a_writer] += model_.others_are_dirty(actor.opener.model);
    const Status status = collective ? actor.file->write_all(extents, data, more) : actor.file->write(extents, data);
    const bool worked = went_well(collective ? "write_all" : "write", extents.empty() ? 0 : extents.front().offset,
                                  extents.empty() ? 0 : extents.back().end(), status);
    if (Schedule::dead()) return;
    for (uint32_t cell : cells) model_.end_write(actor.process, cell, id, worked);
    if (!worked) return;
    if (!collective) more = asked;
    else if (asked && !more) return found("write_all forgot that a rank has more to write");
  }
}

void OpenersWorld::begin_write(Actor& actor, const std::vector<uint32_t>& cells, uint64_t id) {
  for (uint32_t cell : cells) {
    coverage_[Seen::overlapping_writes] += !model_.may_write(actor.process, cell);
    coverage_[Seen::holes_filled] += model_.is_hole(cell) && (cell + 1) * model_.cell_bytes() <= model_.synced_size();
    model_.begin_write(actor.process, cell, id);
  }
}

void OpenersWorld::check_read(const char* what, int process, std::span<const Extent> extents, ByteView bytes, uint64_t got,
                              const OpenersModel::Look& look) {
  const uint64_t must_size = model_.must_size(process, look), may_size = std::max(look.may_size, model_.may_size(process));
  uint64_t position = 0, must = 0, most = 0;
  bool before_must = true, before_most = true;
  for (const Extent& extent : extents) {
    auto inside = [&](uint64_t size) { return extent.offset < size ? std::min(extent.length, size - extent.offset) : 0; };
    if (before_must) must += inside(must_size);
    if (before_most) most += inside(may_size);
    before_must &= inside(must_size) == extent.length;
    before_most &= inside(may_size) == extent.length;
  }
  if (got < must || got > most)
    return found(std::string(what) + " of process " + std::to_string(process) + " gave " + std::to_string(got) + " bytes, not " +
                 std::to_string(must) + " to " + std::to_string(most));
  for (const Extent& extent : extents) {
    const uint64_t there = std::min(extent.length, got > position ? got - position : 0);
    const std::string wrong = model_.check(process, extent.offset, bytes.subspan(position, there), look);
    if (!wrong.empty()) return found(std::string(what) + " of process " + std::to_string(process) + ": " + wrong);
    position += extent.length;
  }
  if (got != position) return;  // it ends in the middle
  const std::string half = model_.half_seen(process, extents, bytes, look);
  if (!half.empty()) found(std::string(what) + " of process " + std::to_string(process) + ": " + half);
}

void OpenersWorld::read(Actor& actor, bool collective, bool whole) {
  std::vector<Extent> extents;
  const uint64_t end = model_.bytes();
  if (whole) {
    extents.push_back({0, end});
  } else {
    const uint64_t pieces = 1 + actor.own() % 3, step = end / pieces;
    for (uint64_t i = 0; i < pieces; ++i) {
      const uint64_t from = i * step + actor.own() % step;
      extents.push_back({from, 1 + actor.own() % ((i + 1) * step - from)});
    }
  }
  uint64_t bytes = 0;
  for (const Extent& extent : extents) bytes += extent.length;
  Bytes into(bytes);
  // In atomic mode each rank reads by itself.
  OpenersModel::Look look = model_.begin_read_alone(actor.process);
  if (collective && !actor.opener.atomic) look = {never, never, model_.begin_read_together(actor.process)};
  look.may_size = model_.may_size(actor.process);
  const uint64_t written = writes_;
  const auto got = collective ? actor.file->read_all(extents, into) : actor.file->read(extents, into);
  const char* const what = collective ? "read_all" : "read";
  if (went_well(what, extents.front().offset, extents.back().end(), got.status())) check_read(what, actor.process, extents, into, *got, look);
  coverage_[Seen::reads_beside_writes_of_threads] += actor.in_thread && writes_ != written;
  if (whole) actor.opener.warm = true;
}

void OpenersWorld::read_alone_or_write(Actor& actor) {
  for (uint64_t i = 1 + actor.own() % mood_.alone; i > 0 && !Schedule::dead() && !stopping_; --i) {
    if (actor.opener.writes && actor.own() % 4) write(actor, false, 1);
    else read(actor, false, actor.own() % 3 == 0);
  }
}

// One or two threads beside the first one, each with choices of its own; they read more than they write, for reads go on side by side.
void OpenersWorld::in_threads(Actor& actor) {
  for (uint64_t i = 1 + actor.own() % 2; i > 0; --i) {
    ++coverage_[Seen::threads_begun];
    schedule_.add_thread(
        [this, mine = Actor{actor.opener, actor.rank, actor.process, actor.together, Random(actor.own()), actor.file, 0, true}]() mutable {
          for (uint64_t calls = 1 + mine.own() % 4; calls > 0 && !Schedule::dead() && !stopping_; --calls) {
            if (mine.own() % 2) read(mine, false, mine.own() % 2);
            else read_alone_or_write(mine);
          }
        });
  }
  read_alone_or_write(actor);
  schedule_.join_threads();
}

void OpenersWorld::independent(Actor& actor) {
  if (features_.threads && actor.own() % 3) in_threads(actor);
  else read_alone_or_write(actor);
}

// What a commit meets, as the model knows it.
void OpenersWorld::count_commit(int opener) {
  const OpenersModel::Meeting meeting = model_.meeting_of(opener, geometry_.row_bytes());
  if (!meeting.dirty) return;
  coverage_[Seen::commits_beside_a_writer] += meeting.others_dirty;
  coverage_[Seen::folds_over_others] += meeting.rows_of_others;
}

void OpenersWorld::sync(Actor& actor) {
  if (actor.rank == 0 && actor.opener.writes) {
    count_commit(actor.opener.model);
    coverage_[Seen::folds_with_warm_caches] += actor.opener.warm;
  }
  model_.begin_collective(actor.process);
  const Committing committing(committing_);
  const Status status = actor.file->sync();
  if (!went_well("sync", 0, 0, status)) return;
  model_.end_collective(actor.process, actor.opener.writes, true);
  if (actor.opener.writes) made_durable();
}

bool OpenersWorld::may_cut(const RunningOpener& opener) const {
  return living_openers() == 1 || (features_.cuts_beside && !model_.others_are_dirty(opener.model));
}

// Growing reserves room: what lies between is holes. Cutting is for the only opener, or where no other one has anything that it has not synced.
void OpenersWorld::set_size(Actor& actor) {
  auto [chosen, first] = actor.opener.sizes.try_emplace(actor.step, never);
  const uint64_t kind = actor.together() % 4;
  const uint64_t row = geometry_.row_bytes();
  if (first && set_size_by_ < 0) {
    set_size_by_ = actor.opener.number;
    if (kind == 0 && features_.cuts && may_cut(actor.opener) && exporting_ == 0 && alone_ < 0) {
      alone_ = actor.opener.number;
      // Not beyond what is synced: that is no cut of what dead sessions have left there, which may show or not.
      const uint64_t most = model_.synced_size() / model_.cell_bytes();
      chosen->second = std::min(random(model_.cell_count()), most) * model_.cell_bytes();
      model_.may_grow_to(chosen->second);  // it may be more than there is, and whoever is killed may have done it
      model_.begin_cut(chosen->second, actor.process);
      ++coverage_[Seen::cuts];
      coverage_[Seen::cuts_beside_others] += living_openers() > 1;
    } else {
      const uint64_t least = model_.largest();
      chosen->second = std::min(least + random(3 * row), std::max(least, model_.bytes()));
      coverage_[Seen::holes_preallocated] += chosen->second > least + row / 2;
      model_.may_grow_to(chosen->second);
    }
    size_limit_ = chosen->second;
  }
  const uint64_t size = chosen->second;
  if (size == never) return sync(actor);
  model_.begin_collective(actor.process);
  const Committing committing(committing_);
  const Status status = actor.file->set_size(size);
  if (went_well("set_size", 0, size, status)) {
    const bool cut = alone_ == actor.opener.number;
    if (cut) model_.end_cut(size);
    model_.end_collective(actor.process, true, !settings_.fast_close, size);
  }
  if (set_size_by_ == actor.opener.number && ++actor.opener.end_of_file == uint64_t(actor.opener.ranks)) {
    actor.opener.end_of_file = 0;
    set_size_by_ = alone_ = -1;
    size_limit_ = never;
  }
}

void OpenersWorld::agreed_size(Actor& actor) {
  const uint64_t before = model_.may_size(actor.process), size = *actor.file->agreed_size();
  if (!went_well("agreed_size", 0, size, Status())) return;
  const uint64_t must_size = model_.must_size(actor.process), may_size = std::max(before, model_.may_size(actor.process));
  if (size < must_size || size > may_size)
    found("agreed_size of process " + std::to_string(actor.process) + " is " + std::to_string(size) + ", not " + std::to_string(must_size) + " to " +
          std::to_string(may_size));
}

// One step of an open; false where it is over.
bool OpenersWorld::step(Actor& actor) {
  ++actor.step;
  if (features_.network && actor.own() % 12 == 0) fork_off(actor);
  if (features_.network && actor.own() % 12 == 0) come_again(actor);
  if (!actor.opener.writes) {
    const uint64_t what = actor.together() % 12;
    if (what < 5) independent(actor);
    else if (what < 8) read(actor, true, actor.together() % 2);
    else if (what < 11) sync(actor);
    else agreed_size(actor);
    return !Schedule::dead();
  }
  const uint64_t what = actor.together() % (10 + mood_.syncs);
  if (what < 4) independent(actor);
  else if (what < 7) write(actor, true, actor.own() % 4 ? 1 : 1 + actor.own() % 3);
  else if (what < 8) read(actor, true, actor.together() % 2);
  else if (what < 9) set_size(actor);
  else if (what < 10) agreed_size(actor);
  else sync(actor);
  return !Schedule::dead();
}

// From open to close. Ends early where the process is killed.
void OpenersWorld::use_file(RunningOpener& opener, int rank) {
  GroupExchange ranks(schedule_, opener.group, rank);
  const int process = Schedule::current_rank();
  Actor actor{opener, rank, process, Random(opener.seed), Random(opener.seed * 31 + uint64_t(rank) + 1), nullptr};
  coverage_[Seen::opens_beside_a_commit] += rank == 0 && !committing_.empty();
  model_.begin_collective(process);
  auto file = open(ranks, opener.writes);
  if (!went_well(opener.writes ? "open to write" : "open to read", 0, 0, file.status())) return;
  model_.end_collective(process, false, false);
  actor.file = std::move(*file);
  if (opener.atomic) {
    model_.begin_collective(process);
    if (went_well("set_atomic", 0, 0, actor.file->set_atomic(true))) model_.end_collective(process, false, false);
  }
  if (actor.together() % 3 == 0) read(actor, true, true);
  const uint64_t steps = 3 + actor.together() % 10;
  // Ranks learn together that it is over: none goes on into a collective call alone.
  while (actor.step < steps && step(actor) && ranks.all_max({int64_t(stopping_ || opener.has_failed)})[0] == 0) {
  }
  if (Schedule::dead()) return;
  if (opener.writes && rank == 0) count_commit(opener.model);
  model_.begin_collective(process);
  const Committing committing(committing_);
  if (!went_well("close", 0, 0, actor.file->close())) return;
  model_.end_collective(process, opener.writes, !settings_.fast_close);
  if (opener.writes) made_durable();
}

void OpenersWorld::run_rank(RunningOpener& opener, int rank) {
  try {
    use_file(opener, rank);
  } catch (const Schedule::Killed&) {
  }
  const int process = Schedule::current_rank();
  model_.forget_process(process);
  processes_.erase(process);
  reachable_.erase(process);
  if (features_.network) site_.agents.died(process);
  if (++opener.ended < opener.ranks) return;
  model_.release(opener.model);
  if (set_size_by_ == opener.number) set_size_by_ = alone_ = -1, size_limit_ = never;
}

// --- tools

bool OpenersWorld::writers_are_there() const {
  return std::any_of(openers_.begin(), openers_.end(), [](const auto& o) { return o->writes && o->ended < o->ranks; });
}

void OpenersWorld::repair_beside(const char* which) {
  const bool beside = writers_are_there();
  auto report = engine::repair_file(which, {}, false, settings_, nullptr);
  if (!went_well("repair", 0, 0, report.status())) return;
  coverage_[Seen::repairs_beside_writers] += beside;
  coverage_[Seen::repairs_that_mended_beside_writers] += beside && report->units_rebuilt + report->records_rewritten > 0;
  made_durable();
}

// A new directory in a member's place, whether that answers or not. It counts among those that are hurt: who has the file open goes on
// without it. That it could not be done is no finding while others are hurt, or take the new one away; what comes of it is.
void OpenersWorld::replace_beside() {
  const int bears = geometry_.scheme.m;
  int member = victims_.empty() ? -1 : victims_[random(victims_.size())];
  const bool enough_without = site_.hidden_from.empty() || int(places_.size()) - int(victims_.size()) - 1 > bears;
  if (int(victims_.size()) < bears && features_.faults && !cuts_off_ && enough_without) {
    const int another = int(random(places_.size()));
    if (std::find(victims_.begin(), victims_.end(), another) == victims_.end()) victims_.push_back(member = another);
  }
  if (member < 0) return;
  const int place = places_[size_t(member)];
  const bool emptied = site_.places[size_t(place)].directory->object_names().empty();
  const auto [begun, first] = fresh_.try_emplace(member, -1);
  if (first) begun->second = onto_new_place(place);
  ++coverage_[Seen::replacements_asked];
  coverage_[Seen::replacements_of_members_that_answer] += !emptied && !site_.gate->failing(place);
  const engine::Replacement asked{site_.places[size_t(place)].path, site_.places[size_t(begun->second)].path};
  auto report = engine::repair_file(path, {asked}, false, settings_, nullptr);
  (void)went_well("repair --replace", uint64_t(place), uint64_t(begun->second), Status());
  last_.back().outcome = report.status().sentence();
  coverage_[Seen::replacements_cut_short] += Schedule::dead();
}

void OpenersWorld::verify_beside() {
  const bool beside = writers_are_there();
  auto located = locate();
  if (!went_well("locate to verify", 0, 0, located.status())) return;
  auto report = engine::verify(*located, settings_, nullptr);
  if (went_well("verify", 0, 0, report.status())) coverage_[Seen::verifies_beside_writers] += beside;
}

void OpenersWorld::look_at_status() {
  const bool beside = writers_are_there();
  auto located = locate();
  if (!went_well("locate for status", 0, 0, located.status())) return;
  auto status = engine::file_status(*located, settings_);
  if (!went_well("status", 0, 0, status.status()) || status->health != engine::Health::lost) return;
  // In one directory members share an object: one's record may be there while another's unit is on its way.
  if (way_.single && beside) return;
  std::string why;
  for (const auto& m : status->members) why += "; " + m.path + " " + m.state + ": " + m.why;
  found("status says lost" + why);
}

// As a reader that opens, reads all and closes; with the checks that come before.
void OpenersWorld::export_file() {
  const int process = Schedule::current_rank();
  model_.add_process(process, model_.add_opener());
  model_.begin_collective(process);
  auto located = locate();
  if (!went_well("locate to export", 0, 0, located.status())) return;
  if (!went_well("check_plausible", 0, 0, engine::check_plausible(*located, settings_))) return;
  auto solo = exchange::make_solo();
  auto file = File::open(std::move(*located), {true, false, false}, settings_, *solo);
  if (!went_well("open to export", 0, 0, file.status())) return;
  model_.end_collective(process, false, false);
  Bytes bytes(model_.bytes());
  const Extent whole{0, bytes.size()};
  auto got = (*file)->read(std::span(&whole, 1), bytes);
  if (went_well("read to export", 0, whole.length, got.status())) check_read("export", process, std::span(&whole, 1), bytes, *got);
  ++coverage_[Seen::exports];
}

void OpenersWorld::run_tool(uint64_t what) {
  if (what == 0) repair_beside(still_file_ && random(3) == 0 ? still_path : path);
  else if (what == 1) verify_beside();
  else if (what == 2) look_at_status();
  else if (what == export_tool) export_file();
  else replace_beside();
  const int process = Schedule::current_rank();
  if (what == export_tool) model_.forget_process(process), --exporting_;
  processes_.erase(process);
  tools_.erase(process);
}

}  // namespace holdfast::sim
