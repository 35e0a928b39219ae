// The driver: `holdfast run` from attempt to attempt, and what happens to the nodes.
#include "sim/checkpoints_world.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/node_path.hpp"
#include "catalog/entry.hpp"
#include "catalog/pool.hpp"
#include "checkpoint/shared.hpp"
#include "checkpoint/together.hpp"
#include "checkpoint/unread.hpp"
#include "checkpoint/updates.hpp"
#include "engine/buffers.hpp"
#include "layout/pack.hpp"

namespace holdfast::sim {

namespace {

struct Shape {
  const char* scheme;
  int nodes;
};
constexpr Shape shapes[] = {{"mirror:2", 3}, {"mirror:3", 4}, {"rs:2+1", 4},   {"rs:2+2", 5},
                            {"rs:2+1", 6},   {"rs:3+2", 6},   {"mirror:2", 5}, {"rs:2+2", 4}};
constexpr size_t most_notes = 60;
constexpr size_t of_many_rows = 400'000;

}  // namespace

CheckpointsWorld::CheckpointsWorld(uint64_t seed, Family family)
    : seed_(seed), random_(seed * 0x9E3779B97F4A7C15ull + 7), site_(seed), schedule_(seed, unsigned(seed % 3) * 3) {
  simulated_clock.begin_anew();
  const Shape& shape = shapes[seed % std::size(shapes)];
  naming_ = Naming(seed / std::size(shapes) % 5);
  const bool by_slots = seed / std::size(shapes) % 3 == 0;
  moves_ = family == Family::renamed;
  if (family == Family::rolled || moves_) naming_ = by_slots ? Naming::many_slots : Naming::many;
  if (family == Family::singles) naming_ = Naming::singles;
  if (family == Family::shared) naming_ = by_slots ? Naming::shared_slots : Naming::shared;
  if (family == Family::together) naming_ = by_slots ? Naming::together_slots : Naming::together;
  settings_.protect = shape.scheme;
  for (int node = 0; node < shape.nodes; ++node) {
    site_.add_node_disk(fmt::format("n{}", node + 1));
    settings_.local.push_back(site_.disks.back().address);
  }
  site_.by_agents = seed % 5 == 4;
  settings_.protect_at_close = seed % 16 == 5;
  settings_.units_remote = seed % 8 == 3;
  settings_.lock_patience_ms = family == Family::singles ? 10'000 : 100'000;
  packs_ = seed / 3 % 4 == (family == Family::rolled ? 2 : 1);
  if (!packs_) settings_.pack_below_bytes = 0;
  streams_ = seed % 6 == 1;
  if (streams_) settings_.striping_unit = layout::min_unit_bytes;
  constexpr size_t sizes_together[] = {1000, 4096, 9001, 30000};
  together_bytes_ = streams_ ? 100'000 : sizes_together[seed / 7 % std::size(sizes_together)];
  bound_memory();
  site_.boot_id = [this] {
    const auto process = at_.find(Schedule::current_rank());
    return process == at_.end() ? "" : fmt::format("{}", boots_[process->second]);
  };
  site_.gate->way = [this](int member) { return way_to(member - Site::gate_number(0)); };
  site_.tree.may_lose_power = seed % 4 == 3;
  model_.held.resize(site_.disks.size());
  old_disks_.resize(site_.disks.size());
  old_held_.resize(site_.disks.size());
  switch (naming_) {
    case Naming::step_and_rank:
    case Naming::slots: settings_.checkpoint = {"/data/ck/ck.{step}.{rank}"}; break;
    case Naming::step: settings_.checkpoint = {"/data/ck/one.{step}"}; break;
    case Naming::counted: settings_.checkpoint = {"/data/ck/restart.{rank}"}; break;
    case Naming::two_patterns: settings_.checkpoint = {"/data/ck/ck.{step}.{rank}", "/data/ck/head.{step}"}; break;
    case Naming::many:
    case Naming::many_slots: settings_.checkpoint = {"/data/ck/{step}.*.{rank}"}; break;
    case Naming::shared:
    case Naming::shared_slots: settings_.checkpoint = {"shared:/data/ck/all.{step}"}; break;
    case Naming::together:
    case Naming::together_slots: settings_.checkpoint = {"/data/ck/all.{step}"}; break;
    case Naming::singles: settings_.checkpoint = {"/data/ck/*.dat"}; break;
  }
  keep_ = 1 + random(2);
  ranks_ = 1 + uint32_t(random(3));
  updating_ = one_in(4) ? Updating::always : one_in(2) ? Updating::now_and_then : Updating::never;
  counts_down_ = !is_of_slots() && naming_ != Naming::counted && one_in(4);
}

// Files of many rows pass through few of them. A process may have so much of content in hands, as much of redundancy (no scheme here has more of it), and what a reader
// holds for the next reads: two rows, and what one of them lacked. Who commits a file of all ranks folds in up to 16 MiB of it at once, which is all of it here.
void CheckpointsWorld::bound_memory() {
  constexpr uint64_t content_bytes = 64 << 10, rows_of_a_reader = 3, largest_of_few_rows = 30'000;
  settings_.buffer_bytes = content_bytes;
  const auto scheme = layout::Scheme::parse(*settings_.protect);
  // What grows has units of 1 MiB where nobody asks for others: these would tell nothing of how much is held.
  if (is_of_all() && !streams_) settings_.striping_unit = round_up(divide_up(largest_of_few_rows, uint64_t(scheme->k)), layout::min_unit_bytes);
  const uint64_t unit_bytes = settings_.striping_unit.value_or(round_up(divide_up(largest_of_few_rows, uint64_t(scheme->k)), layout::min_unit_bytes));
  const uint64_t folded_at_once = !is_of_all() ? 0 : streams_ ? of_many_rows : largest_of_few_rows;
  const uint64_t bound = 2 * content_bytes + rows_of_a_reader * uint64_t(scheme->width()) * unit_bytes + folded_at_once;
  schedule_.counted = engine::used_buffer_bytes;
  schedule_.when_counted = [this, bound](int, int64_t holds) {
    most_held_ = std::max(most_held_, holds);
    if (holds > int64_t(bound)) found(fmt::format("a process has {} bytes of rows in memory, and {} are enough", holds, bound));
  };
}

// Of what a rank writes at once: some fill a part of a row, and where rows are small some many of them.
size_t CheckpointsWorld::any_size(std::span<const size_t> sizes) {
  if (streams_ && one_in(6)) return count(Did::files_of_many_rows), of_many_rows;
  return sizes[random(sizes.size())];
}

std::string CheckpointsWorld::run() {
  schedule_.when_stuck = [this](const char* why) { found(why); };
  schedule_.add([this] { direct(); });
  schedule_.run();
  count(Did::units_kept, site_.second_names), count(Did::units_summed, site_.agents.sums());
  return failure_;
}

void CheckpointsWorld::note(std::string what) {
  notes_.push_back(std::move(what));
  if (notes_.size() > most_notes) notes_.erase(notes_.begin());
}

void CheckpointsWorld::found(const std::string& what) {
  if (failure_.empty()) failure_ = fmt::format("seed {}: {}", seed_, what);
}

std::string CheckpointsWorld::last_operations() const { return fmt::format("{}\n", fmt::join(notes_, "\n")); }

std::vector<int> CheckpointsWorld::up_nodes() {
  std::vector<int> up;
  for (int node = 0; node < int(site_.disks.size()); ++node)
    if (is_up(node)) up.push_back(node);
  return up;
}

int CheckpointsWorld::node_of(const std::string& address) const {
  for (size_t node = 0; node < site_.disks.size(); ++node)
    if (site_.disks[node].address == address) return int(node);
  return -1;
}

void CheckpointsWorld::direct() {
  begin_run();
  for (uint64_t attempts = 1 + random(4); attempts > 0 && !failed(); --attempts) {
    (void)attempt(false);
    between_attempts();
  }
  if (!failed()) settle_down();
}

// A `holdfast run` begins: it knows nothing of what another one did. Directories that are empty are the pool's from now on.
void CheckpointsWorld::begin_run() {
  (void)catalog::make_with_parents("/data/ck");
  if (const auto pool = catalog::open_pool(settings_); !pool && all_well()) found("the pool cannot be opened: " + pool.status().sentence());
  surveyor_.emplace(settings_.local, settings_.deadline_ms);
  last_attempt_ = 0;
  if (!knows_run()) begin_new_run();
}

// Whether a node that answers has anything of the job. `--resume` goes on with nothing else.
bool CheckpointsWorld::knows_run() const {
  const auto survey =
      run_.id.empty() ? Result<checkpoint::Survey>(Status()) : checkpoint::Surveyor(settings_.local, settings_.deadline_ms).look(run_.id);
  return survey && last_attempt(*survey, run_.id).number > 0;
}

// Nothing that comes back later is of it: what was promised of the one before is over.
void CheckpointsWorld::begin_new_run() {
  run_.id = fmt::format("{:016x}", ++runs_);
  model_.promised.clear();
  for (auto& [path, file] : singles_.files) file.promised.clear(), file.removals.clear();
}

// Since `run` looked nodes may have gone, and come back.
void CheckpointsWorld::look_at_nodes() {
  for (int node = 0; node < int(site_.disks.size()); ++node)
    if (!is_reached(node)) lost_now_.insert(node);
}

bool CheckpointsWorld::prepare() {
  lost_now_.clear();
  look_at_nodes();
  std::set<std::string> damaged;
  auto survey = checkpoint::survey_to_begin(run_.id, settings_, damaged);
  if (!survey) {  // all are empty
    begin_run();
    survey = checkpoint::survey_to_begin(run_.id, settings_, damaged);
  }
  count(Did::damage_passed_over, !damaged.empty());
  std::set<std::string> passed_over = damaged;
  if (survey) checkpoint::add_torn_updates(survey->checkpoints, passed_over);
  count(Did::torn_updates_passed_over, passed_over.size() > damaged.size());
  if (!passed_over.empty()) surveyor_.emplace(settings_.local, settings_.deadline_ms, passed_over);
  if (!survey) {  // and too few for the scheme: no job can begin
    if (all_well()) found("no node answers: " + survey.status().sentence());
    return false;
  }
  run_.nodes = survey->live;
  // Each start is later than the one before, and not random: a seed is to say all.
  run_.attempt = next_attempt(*survey, run_.id, last_attempt_, (attempts_.size() + 1) << checkpoint::drawn_bits_of_attempt | seed_ % 1000);
  last_attempt_ = run_.attempt;
  attempts_.push_back(run_.attempt);
  count(Did::numbers_given_again, !numbers_.insert({run_.id, run_.attempt.number}).second);
  if (is_of_all()) checkpoint::remove_left(run_.id, run_.attempt, run_.nodes, settings_.deadline_ms);
  if (is_single()) note_removed_singles(*survey);
  const checkpoint::Beginning beginning = beginning_of(*survey, run_.id);
  run_.from = beginning.from;
  checkpoint::note_beginning(*survey, run_, settings_.deadline_ms);
  checkpoint::forget_unneeded(*survey, run_.id, run_.attempt, beginning.age, settings_);
  from_files_.clear();
  for (const checkpoint::Checkpoint& one : survey->checkpoints)
    if (run_.from && !run_.from->drained && one.run == run_.id && one.attempt == run_.from->attempt && one.step == run_.from->step)
      for (const auto& [place, file] : one.files) from_files_.push_back(file.version.file);
  for (const checkpoint::DrainedCheckpoint& one : survey->drained)
    if (run_.from && run_.from->drained && one.attempt == run_.from->attempt && one.step == run_.from->step)
      for (const auto& file : one.files) from_files_.push_back(file.path);
  note(fmt::format("attempt {} begins with {}, on {} nodes", text_of(run_.attempt),
                   run_.from ? fmt::format("{} of attempt {}", run_.from->step, text_of(run_.from->attempt)) : "nothing", run_.nodes.size()));
  return true;
}

// What is promised is found; how far back it is shows when it is read.
void CheckpointsWorld::check_choice() {
  learn_of_renewals();
  look_at_nodes();
  unreadable_.clear();
  if (is_single()) return count(Did::begun_from_one, run_.from.has_value());
  expected_ = model_.must_find(keep_, lost_now_);
  if (const auto drained = newest_drained(); drained && (!expected_ || *expected_ < *drained)) expected_ = drained;
  begun_round_.reset();
  gone_.clear();
  count(Did::begun_from_one, run_.from.has_value());
  if (!model_.promised.empty() && !expected_) count(Did::beyond_what_is_borne);
  count(Did::begun_from_plain_files, run_.from && run_.from->drained);
  if (expected_ && !run_.from)
    found(fmt::format("round {} of start {} was whole, or is drained, and is not found", expected_->second, expected_->first));
}

bool CheckpointsWorld::attempt(bool calm) {
  count(Did::attempts);
  calm_ = calm;
  if (!calm) begin_weather();
  if (!prepare()) return false;
  check_choice();
  if (failed()) return false;
  start_ranks();
  start_protectors();
  bool well = on_ranks([this](RankOf& rank) { is_single() ? read_singles(rank) : read_beginning(rank); }, !calm);
  if (well && expected_ && begun_round_ && *begun_round_ < *expected_)
    found(fmt::format("attempt {} begins with round {} of attempt {}, and round {} of attempt {} was whole", text_of(run_.attempt),
                      begun_round_->second, begun_round_->first, expected_->second, expected_->first));
  const uint64_t rounds = 1 + random(4);
  for (uint64_t round = 1; round <= rounds && well && !failed(); ++round) {
    const uint64_t step = step_of(round);
    updates_ = updating_ == Updating::always || (updating_ == Updating::now_and_then && one_in(2));
    well = on_ranks([&](RankOf& rank) { is_single() ? work_on_singles(rank, round) : write_all_of(rank, round, step); }, !calm);
    count(Did::checkpoints_written, well);
    note(fmt::format("round {} (step {}) {}", round, step, well ? "written" : "not written"));
    for (uint64_t turns = random(60); turns > 0; --turns) Schedule::yield(true);
    revive_protectors();
    if (one_in(2)) look_and_tidy();
    if (one_in(5)) (void)drain_newest();
  }
  const bool killed = !calm && one_in(5);  // `run` itself: nobody drops, and nobody waits
  const auto unknown = end_protectors(!killed);
  if (!killed && is_shared())
    for (const std::string& remark : checkpoint::seal_left(run_, settings_, well)) note(remark);
  if (!killed && is_of_all()) checkpoint::remove_left(run_.id, run_.attempt, settings_.local, settings_.deadline_ms);
  if (!killed && well && is_rolled()) (void)checkpoint::roll_ended(run_, settings_, unknown);
  if (!killed) look_and_tidy();
  if (killed) begin_run();
  if (calm && all_well()) check_calm_attempt(well);
  return well;
}

uint64_t CheckpointsWorld::step_of(uint64_t round) const {
  const uint64_t from = run_.from ? run_.from->step : 0;
  switch (naming_) {
    case Naming::slots:
    case Naming::many_slots:
    case Naming::shared_slots:
    case Naming::together_slots: return 1 + (from + round - 1) % 2;
    case Naming::counted: return from + round;
    default: return counts_down_ ? (from ? from : 1'000'000) - 10 * round : from + 10 * round;
  }
}

void CheckpointsWorld::start_ranks() {
  job_.clear();
  const uint32_t before = ranks_;
  const uint32_t fewest = writes_before_.value_or(false) ? 2 : 1;  // of one rank alone that would be a version
  if (one_in(4)) ranks_ = fewest + uint32_t(random(4 - fewest));
  if (run_.from && ranks_ != before) count(Did::other_rank_counts);
  const auto patterns = checkpoint::Patterns::parse(settings_.checkpoint);
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    RankOf& one = job_.emplace_back();
    one.number = rank;
    one.node = node_of(run_.nodes[((packs_ ? rank / 2 : rank) + run_.attempt.number) % run_.nodes.size()]);
    one.front = Front::make(settings_, *patterns, run_, {rank, ranks_, site_.disks[size_t(one.node)].address});
  }
}

// Side by side, and the world goes on. False where not all of them have ended well: the job is over.
bool CheckpointsWorld::on_ranks(const std::function<void(RankOf&)>& body, bool may_die) {
  for (RankOf& rank : job_) {
    rank.ended_well = false;
    rank.process = schedule_.add([&body, &rank] { body(rank); });
    at_[rank.process] = rank.node;
    if (!is_up(rank.node) || rank.died_with_node) schedule_.kill(rank.process);
    if (!may_die || !one_in(10)) continue;
    schedule_.kill_after(rank.process, int64_t(1 + random(80)));
    count(Did::ranks_killed), ++deaths_;
  }
  uint64_t until = may_die && one_in(3) ? 1 + random(100) : 0;
  while (std::any_of(job_.begin(), job_.end(), [this](const RankOf& rank) { return !schedule_.has_ended(rank.process); })) {
    Schedule::yield(true);
    if (until > 0 && --until == 0) disturb();
  }
  return std::all_of(job_.begin(), job_.end(), [](const RankOf& rank) { return rank.ended_well; });
}

void CheckpointsWorld::start_protectors() {
  for (const std::string& address : run_.nodes) start_protector(node_of(address));
}

void CheckpointsWorld::start_protector(int node) {
  auto over = std::make_shared<Ending>(Ending::not_yet);
  const auto body = [this, over, node, run = run_] {
    checkpoint::Protector protector(settings_, run, site_.disks[size_t(node)].address, [this, node](const std::string& sentence) {
      note(fmt::format("n{}: {}", node + 1, sentence));
      count(Did::failed_by_name, sentence.find("is not protected") != std::string::npos);
    });
    if (!protector.begin()) return;
    for (uint32_t looks = 0; *over == Ending::not_yet && !Schedule::dead(); ++looks) {
      const bool may_seal = is_shared() && looks % 8 == 0;
      if (looks < most_renewals || may_seal || entries(node, checkpoint::State::closed, run.attempt) > 0) protector.work();
      Schedule::yield(true);
    }
    for (int look = 0; look < 3 && !Schedule::dead() && !protector.finish_closed(); ++look) Schedule::yield(true);
    if (*over == Ending::told) (void)protector.end();
  };
  protectors_.push_back({node, schedule_.add(body), over});
  at_[protectors_.back().process] = node;
  if (calm_ || !one_in(8)) return;
  schedule_.kill_after(protectors_.back().process, int64_t(1 + random(300)));
  count(Did::protectors_killed), ++deaths_;
}

// The nodes whose protectors have died, and were not started anew.
std::vector<std::string> CheckpointsWorld::end_protectors(bool waits) {
  std::vector<std::string> unknown;
  for (ProtectorOf& one : protectors_) *one.over = waits ? Ending::told : Ending::cut_off;
  if (!waits) return count(Did::late_protectors, protectors_.size()), unknown;
  while (std::any_of(protectors_.begin(), protectors_.end(), [this](const ProtectorOf& one) { return !schedule_.has_ended(one.process); }))
    Schedule::yield(true);
  for (const ProtectorOf& one : protectors_)
    if (schedule_.is_dead(one.process)) unknown.push_back(site_.disks[size_t(one.node)].address);
  protectors_.clear();
  return unknown;
}

// What a look says is whole for good is promised from then on. Then what is too old goes.
void CheckpointsWorld::look_and_tidy() {
  if (is_single()) look_at_singles();
  const auto all = surveyor_->look_during(run_);
  if (!all) return;
  for (const checkpoint::Checkpoint& one : *all)
    if (one.run == run_.id && one.are_singles) promise_singles(one, surveyor_->last_versions());
    else if (one.run == run_.id && one.endures()) promise(one);
  const auto old = to_drop(*all, run_.id, keep_);
  checkpoint::note_giving_way(old, run_, settings_);
  for (const std::vector<layout::Manifest>& files : surveyor_->stores_of(old)) {
    count(Did::versions_dropped, files.size());
    for (const layout::Manifest& old : files)
      note(fmt::format("drops {} of step {} of attempt {}", old.version->file, old.version->step, text_of(old.version->attempt)));
    dropping_ = true;
    (void)checkpoint::drop(files, run_.attempt, settings_);
    dropping_ = false;
  }
}

void CheckpointsWorld::promise(const checkpoint::Checkpoint& one) {
  std::optional<CheckpointsModel::Round> round;
  for (const auto& [place, file] : one.files) {
    const CheckpointsModel::Write* const write = model_.named(CheckpointsModel::key_of(file.version, file.written_on()));
    if (!write || !write->complete)
      return found(fmt::format("version {} of {} is whole, and nobody has closed that", file.version.number, file.version.file));
    if (round && *round != write->round)
      return found(fmt::format("step {} of attempt {} is whole, and its files are of rounds {} and {}", one.step, text_of(one.attempt), round->second,
                               write->round.second));
    round = write->round;
  }
  if (is_rolled()) {
    size_t all = 0, removed = 0;
    for (uint32_t rank = 0; rank < one.writers; ++rank)
      for (const std::string& path : paths_of(rank, one.step)) ++all, removed += removed_.contains({one.attempt, path});
    if (one.files.size() > all || one.files.size() + removed < all)
      return found(fmt::format("step {} of attempt {} is whole, with {} of {} files", one.step, text_of(one.attempt), one.files.size(), all));
  }
  const bool is_new = !model_.promised.contains(*round);
  CheckpointsModel::Promise& promised = model_.promised[*round];
  promised.step = one.step;
  for (const auto& [place, file] : one.files) promise(promised, file, is_new);
  if (one.roll_of_all) promise(promised, *one.roll_of_all, is_new);
  else
    for (const auto& [rank, roll] : one.rolls) promise(promised, roll, is_new);
  if (!is_new) return;
  count(Did::checkpoints_whole);
  note(fmt::format("step {} of attempt {} is whole (round {})", one.step, text_of(one.attempt), round->second));
}

// Of a roll the manifest is all that is needed, unless it lies beside files in a pack.
void CheckpointsWorld::promise(CheckpointsModel::Promise& promise, const checkpoint::Protected& file, bool is_new) {
  const auto manifest = surveyor_->manifest_of(file.file_id);
  CheckpointsModel::File& kept = promise.files[file.version.file];
  if (!manifest || kept.id == file.file_id) return;
  const auto& scheme = manifest->geometry.scheme;
  const int of_row = is_of_all() ? manifest->geometry.members - scheme.m : scheme.k;  // rows go round more nodes than they are wide
  kept = {file.file_id, CheckpointsModel::key_of(file.version, file.written_on()), file.version.roll && !manifest->within ? 1 : of_row,
          scheme.width()};
  for (const std::string& address : file.on) model_.held[size_t(node_of(address))].insert(file.file_id);
  count(Did::files_made_anew, !is_new);
  count(is_new ? Did::files_packed : Did::packs_made_anew, manifest->within != nullptr);
}

// What was made anew is kept by other nodes, and what it took the place of is gone. Nobody of the job has told of it yet.
void CheckpointsWorld::learn_of_renewals() {
  std::map<CheckpointsModel::Key, Holders> holders;
  for (size_t node = 0; node < site_.disks.size(); ++node)
    for (const auto& [name, directory] : site_.disks[node].root->entries)
      for (const layout::Manifest& manifest : final_manifests_in(name, *directory))
        holders[CheckpointsModel::key_of(manifest)][manifest.file_id].push_back(node);
  for (auto& [round, promise] : model_.promised)
    for (auto& [place, file] : promise.files) learn_of_renewal(file, holders[file.key]);
  for (auto& [path, single] : singles_.files)
    for (auto& [order, promise] : single.promised) learn_of_renewal(promise.file, holders[promise.file.key]);
}

void CheckpointsWorld::learn_of_renewal(CheckpointsModel::File& file, const Holders& holders) {
  const auto old = holders.find(file.id);
  if (old != holders.end() && std::any_of(old->second.begin(), old->second.end(), [this](size_t node) { return is_reached(int(node)); })) return;
  for (const auto& [id, nodes] : holders) {
    if (id == file.id || nodes.size() < size_t(file.width)) continue;
    file.id = id;
    for (const size_t node : nodes) model_.held[node].insert(id);
    return count(Did::files_made_anew);
  }
}

// Of each text once: the nodes hold the same ones, and they are looked at after each fault.
const std::vector<layout::Manifest>& CheckpointsWorld::final_manifests_in(const std::string& name, const Inode& directory) const {
  static const std::vector<layout::Manifest> none;
  if (!directory.directory() || !catalog::is_file_directory(name)) return none;
  const InodePtr text = site_.tree.find(directory, "manifest");
  if (!text) return none;
  Bytes bytes(text->now.size());
  text->now.read(0, bytes);
  const auto known = manifests_read_.find(bytes);
  return known != manifests_read_.end() ? known->second : manifests_read_.emplace(bytes, final_manifests_of(bytes)).first->second;
}

std::vector<layout::Manifest> CheckpointsWorld::final_manifests_of(ByteView text) {
  auto manifest = layout::decode(text);
  if (!manifest || !manifest->is_final()) return {};
  if (manifest->pack.empty()) return {std::move(*manifest)};
  const auto pack = std::make_shared<const layout::Manifest>(std::move(*manifest));
  std::vector<layout::Manifest> files;
  for (size_t i = 0; i < pack->pack.size(); ++i) files.push_back(layout::file_in(pack, i));
  return files;
}

// --- what happens

void CheckpointsWorld::lose(int node) {
  note(fmt::format("n{} is lost", node + 1));
  count(Did::nodes_lost);
  learn_of_renewals();
  ++faults_, ++deaths_;
  lost_now_.insert(node);
  cut_off_.erase(node), stopped_.erase(node);
  site_.gate->fail(Site::gate_number(node), one_in(2) ? Kind::timed_out : Kind::io);
  for (RankOf& rank : job_)
    if (rank.node == node && rank.process >= 0) schedule_.kill(rank.process);
  for (ProtectorOf& one : protectors_)
    if (one.node == node) schedule_.kill(one.process);
}

void CheckpointsWorld::bring_back(int node, bool may_be_wiped) {
  const size_t at = size_t(node);
  learn_of_renewals();
  if (may_be_wiped && one_in(2)) {
    note(fmt::format("n{} is wiped", node + 1));
    count(Did::nodes_wiped);
    site_.change_disk(node, nullptr);
    model_.held[at].clear();
    singles_.forget_notes_of(node);
  } else if (may_be_wiped && !old_disks_[at].empty() && one_in(2)) {
    note(fmt::format("n{} comes back with old data", node + 1));
    count(Did::nodes_back_with_old_data);
    site_.change_disk(node, old_disks_[at].back());
    model_.held[at] = old_held_[at].back();
    old_disks_[at].pop_back(), old_held_[at].pop_back();
    singles_.forget_notes_of(node);
  }
  site_.disks[at].full = false;
  site_.heal(Site::gate_number(node));
  about_to_fail_.erase(node);
}

// While the job runs.
void CheckpointsWorld::disturb() {
  const auto up = up_nodes();
  if (up.empty()) return;
  const int node = up[random(up.size())];
  switch (random(4)) {
    case 0:
      note(fmt::format("the disk of n{} is full", node + 1));
      site_.disks[size_t(node)].full = true;
      return ++faults_, ++deaths_, count(Did::disks_filled);
    case 1:
      note(fmt::format("n{} fails from some call on", node + 1));
      about_to_fail_.insert(node);
      site_.gate->fail_later(Site::gate_number(node), int64_t(1 + random(60)), Kind::io);
      return ++faults_, ++deaths_, count(Did::disks_that_failed);
    default:
      if (up.size() > 1) lose(node);
  }
}

void CheckpointsWorld::between_attempts() {
  for (int node = 0; node < int(site_.disks.size()); ++node) {
    const size_t at = size_t(node);
    if (is_up(node) && one_in(12)) old_disks_[at].push_back(site_.copy_of_disk(node)), old_held_[at].push_back(model_.held[at]);
    if (one_in(2)) reach_again(node);
    if (is_up(node) && one_in(20)) lose_power(node);
    if (!is_up(node) ? one_in(2) : site_.disks[at].full) bring_back(node, !is_up(node));
    else if (is_up(node) && one_in(5) && up_nodes().size() > 1) lose(node);
  }
  if (up_nodes().empty()) bring_back(0, false);
  if (one_in(3)) begin_run();
}

// Everything is there again and stays: what was promised is found, what is written is protected, what was dropped is gone.
void CheckpointsWorld::settle_down() {
  calm_ = true;
  for (int node = 0; node < int(site_.disks.size()); ++node) reach_again(node);
  for (int node = 0; node < int(site_.disks.size()); ++node)
    if (!is_up(node) || site_.disks[size_t(node)].full) bring_back(node, one_in(4));
  for (int node = 0; node < int(site_.disks.size()); ++node) site_.heal(Site::gate_number(node));
  about_to_fail_.clear();
  (void)end_protectors(true);
  faults_ = 0;
  note("all nodes are back");
  begin_run();
  if (!failed()) (void)attempt(true);
  if (!failed()) look_and_tidy();
  if (!failed()) check_nothing_is_left();
  if (!failed()) check_local_copies_are_bounded();
  if (!failed() && is_single()) return check_drained_singles();
  if (!failed() && one_in(2)) check_drain();
  if (!failed() && one_in(2)) check_damage();
}

void CheckpointsWorld::check_calm_attempt(bool well) {
  if (failed()) return;
  if (!well) return found("in calm times the job does not end well");
  for (int node = 0; node < int(site_.disks.size()); ++node)
    for (const auto state : {checkpoint::State::writing, checkpoint::State::closed, checkpoint::State::protecting, checkpoint::State::failed})
      if (entries(node, state, run_.attempt) > 0)
        return found(fmt::format("in calm times n{} has {} files that are {} at the end", node + 1, entries(node, state, run_.attempt),
                                 checkpoint::state_name(state)));
  if (is_single()) return check_calm_singles();
  const bool may_be_none = updating_ == Updating::now_and_then;  // in the last round less than before
  if (!may_be_none && (model_.promised.empty() || model_.promised.rbegin()->first.first != attempts_.size()))
    found("in calm times no checkpoint is whole at the end");
}

// By what the disks hold. A promise that was dropped is not there, however many newer ones were lost since: it is none of those that are kept.
bool CheckpointsWorld::is_there(const CheckpointsModel::Promise& promise) const {
  return std::all_of(promise.files.begin(), promise.files.end(), [this](const auto& file) {
    const auto has_it = [&](const NodeDisk& disk) {
      return std::any_of(disk.root->entries.begin(), disk.root->entries.end(), [&](const auto& entry) {
        const auto& manifests = final_manifests_in(entry.first, *entry.second);
        return std::any_of(manifests.begin(), manifests.end(), [&](const auto& manifest) { return manifest.file_id == file.second.id; });
      });
    };
    return std::count_if(site_.disks.begin(), site_.disks.end(), has_it) >= file.second.least;
  });
}

void CheckpointsWorld::check_nothing_is_left() {
  if (is_single()) return check_no_single_is_left();
  if (is_of_slots()) return;
  size_t kept = 0;
  CheckpointsModel::Round oldest{0, 0};
  for (auto one = model_.promised.rbegin(); one != model_.promised.rend() && kept < keep_; ++one)
    if (!model_.is_replaced(one->first) && !model_.may_be_half(one->first) && is_there(one->second))
      oldest = one->first, ++kept;  // what is updated in part is not whole
  if (kept < keep_) return;
  for (size_t node = 0; node < site_.disks.size(); ++node)
    for (const auto& [name, directory] : site_.disks[node].root->entries) {
      const auto& manifests = final_manifests_in(name, *directory);
      if (manifests.empty() && catalog::is_file_directory(name) && deaths_ == 0) found(fmt::format("n{} has an orphan", node + 1));
      for (const layout::Manifest& manifest : manifests) {
        if (manifest.version->run != run_.id) continue;  // came back with its node
        const auto* const write = model_.named(CheckpointsModel::key_of(manifest));
        if (write && write->round < oldest)
          return found(fmt::format("n{} keeps {} of step {} of attempt {}, which was dropped", node + 1, manifest.version->file,
                                   manifest.version->step, text_of(manifest.version->attempt)));
      }
    }
}

// However often a job was started again: of the attempts before this one nodes keep no copies that nobody reads. Names stay, and what was not protected.
void CheckpointsWorld::check_local_copies_are_bounded() {
  for (size_t node = 0; node < site_.disks.size(); ++node) {
    const InodePtr run = site_.tree.below(*site_.disks[node].root, fmt::format("{}/{}", checkpoint::local_directory, run_.id));
    if (!run) continue;
    for (const auto& [text, directory] : run->entries) {
      const auto attempt = layout::parse_attempt(text);
      if (!attempt || *attempt >= run_.attempt) continue;
      for (const auto state : {checkpoint::State::restored, checkpoint::State::twin, checkpoint::State::writing})
        if (entries(int(node), state, *attempt) > 0)
          return found(fmt::format("n{} keeps files of attempt {} that are {}", node + 1, text, checkpoint::state_name(state)));
      for (const auto& [name, inode] : directory->entries)
        if (name.starts_with(checkpoint::scratch_begins)) return found(fmt::format("n{} keeps {} of attempt {}", node + 1, name, text));
    }
  }
}

}  // namespace holdfast::sim
