// One checkpoint file of all ranks, which each of them opens by itself, on nodes that are lost while ranks, protectors and `run` are killed: from one seed.
// What the file may hold is the model's to say: all bytes of all ranks, or it is no checkpoint.
//
//   SIM_SEED=17 SIM_SCHEDULES=1 build/bin/sim_test --gtest_filter='SharedCheckpoints.*'   replays one schedule
#include <gtest/gtest.h>

#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "catalog/pool.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/protector.hpp"
#include "checkpoint/shared.hpp"
#include "checkpoint/together.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/openers_site.hpp"
#include "sim/schedule.hpp"

namespace holdfast::sim {
namespace {

constexpr uint64_t rounds_of_attempt = 3;
constexpr size_t part_bytes = 600, parts_of_rank = 4;  // of each rank: they stand in turn, so that rows and blocks are of several

struct SharedShape {
  const char* scheme;
  int nodes;
};
constexpr SharedShape shared_shapes[] = {{"mirror:2", 3}, {"rs:2+1", 4}, {"rs:2+2", 5}, {"mirror:3", 5}};

class SharedWorld {
 public:
  using Front = frontend::posix::Checkpoints;

  explicit SharedWorld(uint64_t seed) : seed_(seed), random_(seed), site_(seed), schedule_(seed, 4) {
    const SharedShape& shape = shared_shapes[random(std::size(shared_shapes))];
    settings_.protect = shape.scheme;
    settings_.striping_unit = 4096;
    settings_.checkpoint = {"shared:/data/ck.{step}"};
    slots_ = random(3) == 0;
    wipes_ = random(4) == 0;  // and nothing else is lost: what it had is made anew by nobody here
    for (int node = 1; node <= shape.nodes; ++node) {
      site_.add_node_disk(fmt::format("n{}", node));
      settings_.local.push_back(site_.disks.back().address);
    }
    scheme_ = *layout::Scheme::parse(shape.scheme);
    ranks_ = uint32_t(2 + random(uint64_t(shape.nodes) - 1));
  }

  std::string run() {
    schedule_.when_stuck = [this](const char* why) { found(why); };
    schedule_.add([this] { direct(); });
    schedule_.run();
    return failure_;
  }
  std::map<std::string, uint64_t> done;
  std::vector<std::string> notes;

 private:
  struct RankOf {
    int node = 0, process = -1;
    std::unique_ptr<Front> front;
    bool ended_well = false;
  };

  uint64_t random(uint64_t below) { return random_() % below; }
  bool one_in(uint64_t n) { return random(n) == 0; }
  void found(const std::string& what) {
    if (failure_.empty()) failure_ = fmt::format("seed {}: {}", seed_, what);
  }
  void note(std::string what) { notes.push_back(std::move(what)); }

  void direct() {
    if (!catalog::open_pool(settings_)) return found("no pool");
    for (int attempts = 2; attempts > 0 && failure_.empty(); --attempts) attempt(false);
    if (failure_.empty()) attempt(true);
  }

  void attempt(bool calm) {
    for (int node : lost_) site_.heal(Site::gate_number(node));
    lost_.clear();
    if (wipes_ && calm) {
      const int node = int(random(site_.disks.size()));
      note(fmt::format("n{} is wiped", node + 1));
      site_.change_disk(node, nullptr);
      if (!catalog::open_pool(settings_)) return found("no pool");
      ++done["nodes wiped"];
    }
    calm_ = calm, faults_ = 0;
    if (!begin()) return;
    start_protectors();
    start_ranks();
    uint64_t until = calm || wipes_ || one_in(2) ? 0 : 1 + random(400);
    const auto is_at_work = [&](const RankOf& rank) { return !schedule_.has_ended(rank.process); };
    while (std::any_of(job_.begin(), job_.end(), is_at_work)) {
      Schedule::yield(true);
      if (until > 0 && --until == 0) lose_a_node();
    }
    const bool well = std::all_of(job_.begin(), job_.end(), [](const RankOf& rank) { return rank.ended_well; });
    for (uint64_t turns = random(200); turns > 0; --turns) Schedule::yield(true);
    if (one_in(2)) look("while the attempt runs");
    end(well);
    look("when it has ended");
    if (failure_.empty() && well && faults_ == 0 && newest_ != rounds_of_attempt)
      found("the job has ended well, and its last checkpoint is not whole");
  }

  bool begin() {
    const auto survey = checkpoint::Surveyor(settings_.local, settings_.deadline_ms).look(run_.id);
    if (!survey) return found(survey.status().sentence()), false;
    run_.nodes = survey->live;
    run_.attempt = {run_.attempt.number + 1, (run_.attempt.number + 1) << checkpoint::drawn_bits_of_attempt};
    checkpoint::remove_left(run_.id, run_.attempt, run_.nodes, settings_.deadline_ms);
    run_.from = checkpoint::beginning_of(*survey, run_.id).from;
    if (promised_ && (!run_.from || std::pair(run_.from->attempt.number, rounds_[{run_.from->attempt.number, run_.from->step}]) < *promised_))
      found(fmt::format("what was whole in attempt {} is not found", promised_->first));
    note(fmt::format("attempt {} begins with {}", run_.attempt.number, run_.from ? fmt::format("{}", run_.from->step) : "nothing"));
    done["begun with one"] += run_.from.has_value();
    return failure_.empty();
  }

  uint64_t step_of(uint64_t round) const {
    const uint64_t from = run_.from ? run_.from->step : 0;
    return slots_ ? 1 + (from + round - 1) % 2 : from + round;
  }
  static std::string path_of(uint64_t step) { return fmt::format("/data/ck.{}", step); }
  std::byte byte_of(uint32_t rank, uint64_t round) const { return std::byte(1 + (run_.attempt.number * 31 + round * 7 + rank * 3) % 250); }

  void start_ranks() {
    job_.clear();
    job_.resize(ranks_);
    const auto patterns = checkpoint::Patterns::parse(settings_.checkpoint);
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      job_[rank].node = int((rank + run_.attempt.number) % site_.disks.size());
      job_[rank].front = Front::make(settings_, *patterns, run_, {rank, ranks_, site_.disks[size_t(job_[rank].node)].address});
    }
    mixes_ = one_in(2);
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      job_[rank].process = schedule_.add([this, rank] {
        job_[rank].ended_well = true;
        for (uint64_t round = 1; round <= rounds_of_attempt && job_[rank].ended_well; ++round) {
          job_[rank].ended_well = write(rank, round, mixes_ && rank > 0 ? O_CREAT : O_CREAT | O_TRUNC);
          if (job_[rank].ended_well && one_in(2)) job_[rank].ended_well = look_to_update(rank, slots_ ? round : 1 + random(round));
        }
      });
      if (calm_ || !one_in(8)) continue;
      schedule_.kill_after(job_[rank].process, int64_t(1 + random(900)));
      ++faults_, ++done["ranks killed"];
    }
  }

  // Its own part. In slots a rank waits for the others, or nobody could say which of its rounds is which; and who does not truncate the file, for who does. Where all truncate
  // it they wait for each other before they write.
  bool write(uint32_t rank, uint64_t round, int flags) {
    Front& front = *job_[rank].front;
    const auto others = [&](uint64_t of) -> std::set<uint32_t>& { return closed_[{run_.attempt.number, of}]; };
    const auto waits = [&] {
      return (slots_ && round > 1 && others(round - 1).size() < ranks_) || (!(flags & O_TRUNC) && !others(round).contains(0));
    };
    while (waits()) {
      Schedule::yield(true);
      if (Schedule::dead() || faults_ > 0) return false;
    }
    const uint64_t step = step_of(round);
    const auto shared = front.open_shared(*front.match(path_of(step)), O_WRONLY | flags, 0644);
    if (Schedule::dead()) return false;
    if (!shared) return refused(fmt::format("rank {} cannot open step {}: {}", rank, step, shared.status().sentence()));
    auto& opened = opened_[{run_.attempt.number, round}];
    opened.insert(rank);
    while ((flags & O_TRUNC) && !mixes_ && opened.size() < ranks_) {
      Schedule::yield(true);
      if (Schedule::dead() || faults_ > 0) return false;
    }
    Status written = front.shared_written(*shared).status();
    if (written && !Schedule::dead()) written = write_pieces(*shared, rank, round);
    if (Schedule::dead()) return false;
    if (written) closed_[{run_.attempt.number, round}].insert(rank);  // before anybody may hear of it
    front.shared_closed(*shared, written.ok(), true);
    if (Schedule::dead()) return false;
    names_[{run_.attempt.number, step, shared->name.number}] = round;
    note(fmt::format("rank {} has written round {} (step {}, version {})", rank, round, step, shared->name.number));
    return written ? true : refused(fmt::format("rank {} cannot write step {}: {}", rank, step, written.sentence()));
  }
  // As programs do that open to read and write what they only read. No version comes of it: check() would not know its number.
  bool look_to_update(uint32_t rank, uint64_t round) {
    Front& front = *job_[rank].front;
    const auto shared = front.open_shared(*front.match(path_of(step_of(round))), O_RDWR, 0644);
    if (Schedule::dead()) return false;
    if (!shared) return refused(fmt::format("rank {} cannot look at round {}: {}", rank, round, shared.status().sentence()));
    done["opened to be read"] += shared->may_stay_so;
    const auto alone = exchange::make_solo();
    const auto file = engine::ProtectedFile::open(checkpoint::locate_shared(shared->manifest, settings_), {}, settings_, *alone);
    Bytes own(part_bytes);
    const Extent extent{rank * part_bytes, own.size()};
    const auto got = file ? (*file)->read({&extent, 1}, own) : Result<uint64_t>(file.status());
    if (Schedule::dead()) return false;
    front.shared_closed(*shared, true, true);
    if (Schedule::dead()) return false;
    if (!got) return refused(fmt::format("rank {} cannot read round {}: {}", rank, round, got.status().sentence()));
    if (*got != own.size() || own.front() != byte_of(rank, round)) return found(fmt::format("rank {} does not see round {}", rank, round)), false;
    return true;
  }
  bool refused(const std::string& what) {
    if (faults_ == 0) found(what);
    return false;
  }

  Status write_pieces(const Front::Shared& shared, uint32_t rank, uint64_t round) {
    const auto alone = exchange::make_solo();
    Settings durable = settings_;
    durable.fast_close = false;
    auto file = engine::ProtectedFile::open(checkpoint::locate_shared(shared.manifest, durable), {.read = true, .write = true}, durable, *alone);
    if (!file) return file.status();
    const Bytes bytes(part_bytes, byte_of(rank, round));
    for (size_t i = 0; i < parts_of_rank; ++i) {
      const Extent extent{(i * ranks_ + rank) * part_bytes, part_bytes};
      HF_TRY((*file)->write({&extent, 1}, bytes));
      if (i == 1 && round == 2) HF_TRY((*file)->sync());
    }
    return (*file)->close();
  }

  void start_protectors() {
    over_ = false;
    protectors_.clear();
    for (const std::string& address : run_.nodes) {
      const int process = schedule_.add([this, address, run = run_] {
        checkpoint::Protector protector(settings_, run, address, [this](const std::string& sentence) { note(sentence); });
        if (!protector.begin()) return;
        while (!over_ && !Schedule::dead()) {
          for (int turns = 0; turns < 20 && !over_; ++turns) Schedule::yield(true);
          protector.work();
        }
        (void)protector.finish_closed();
        (void)protector.end();
      });
      protectors_.push_back(process);
      if (calm_ || !one_in(6)) continue;
      schedule_.kill_after(process, int64_t(1 + random(600)));
      ++done["protectors killed"];
    }
  }

  void lose_a_node() {
    const int node = int(random(site_.disks.size()));
    if (int(lost_.size()) >= scheme_.m || !lost_.insert(node).second) return;
    note(fmt::format("n{} is lost", node + 1));
    ++faults_, ++done["nodes lost"];
    site_.gate->fail(Site::gate_number(node), one_in(2) ? Kind::timed_out : Kind::io);
    for (const RankOf& rank : job_)
      if (rank.node == node) schedule_.kill(rank.process);
    for (size_t i = 0; i < protectors_.size(); ++i)
      if (run_.nodes[i] == site_.disks[size_t(node)].address) schedule_.kill(protectors_[i]);
  }

  void end(bool well) {
    over_ = true;
    while (std::any_of(protectors_.begin(), protectors_.end(), [this](int process) { return !schedule_.has_ended(process); })) Schedule::yield(true);
    if (!calm_ && one_in(6)) {
      ++done["runs killed"], ++faults_;
      return;
    }
    for (const std::string& remark : checkpoint::seal_left(run_, settings_, well)) note(remark);
    checkpoint::remove_left(run_.id, run_.attempt, settings_.local, settings_.deadline_ms);
  }

  // What is whole has all bytes of all ranks, of one round.
  void look(const char* when) {
    const auto survey = checkpoint::Surveyor(settings_.local, settings_.deadline_ms).look(run_.id);
    if (!survey) return found(survey.status().sentence());
    newest_.reset();
    for (const checkpoint::Checkpoint& one : survey->checkpoints) {
      if (!one.whole()) continue;
      for (const layout::Manifest& manifest : manifests_of(one, survey->versions)) check(manifest, when);
      if (one.attempt == run_.attempt) newest_ = std::max(newest_, std::optional(rounds_[{one.attempt.number, one.step}]));
      promised_ = std::max(promised_.value_or(std::pair(0u, uint64_t(0))), std::pair(one.attempt.number, rounds_[{one.attempt.number, one.step}]));
      ++done["whole"];
    }
  }

  // By a protector since it was listed: another one has its bytes, and is looked at when it is listed.
  bool was_made_anew(const layout::Manifest& manifest) {
    const auto now = catalog::VersionList().look(settings_.local, settings_.deadline_ms);
    bool is_there = false, is_elsewhere = false;
    for (const catalog::FoundVersion& one : *now) {
      is_there |= one.manifest.file_id == manifest.file_id;
      is_elsewhere |= one.manifest.file_id != manifest.file_id && one.manifest.version == manifest.version && one.readable();
    }
    return !is_there && is_elsewhere;
  }

  void check(const layout::Manifest& manifest, const char* when) {
    const layout::Version& version = *manifest.version;
    const auto name = names_.find({version.attempt.number, version.step, version.number});
    const uint64_t round = name == names_.end() ? 0 : name->second;
    const std::string what = fmt::format("step {} of attempt {} (round {}) is whole {}", version.step, version.attempt.number, round, when);
    const auto closed = closed_.find({version.attempt.number, round});
    if (closed == closed_.end() || closed->second.size() < ranks_) return found(what + ", and not all ranks have closed it");
    rounds_[{version.attempt.number, version.step}] = round;
    const auto alone = exchange::make_solo();
    const auto file = engine::ProtectedFile::open(catalog::locate_version(manifest, settings_), {}, settings_, *alone);
    if (!file && was_made_anew(manifest)) return;
    if (!file) return found(what + ", and cannot be opened: " + file.status().sentence());
    Bytes bytes(ranks_ * parts_of_rank * part_bytes + 1);
    const Extent all{0, bytes.size()};
    const auto got = (*file)->read({&all, 1}, bytes);
    if (!got || *got != bytes.size() - 1) return found(fmt::format("{}, and has {} bytes", what, got ? *got : 0));
    const auto of_attempt = run_.attempt;
    run_.attempt = version.attempt;
    for (size_t at = 0; at < *got; ++at)
      if (const auto rank = uint32_t(at / part_bytes % ranks_); bytes[at] != byte_of(rank, round)) {
        found(fmt::format("{}, and byte {} is not that of rank {}", what, at, rank));
        break;
      }
    run_.attempt = of_attempt;
  }

  const uint64_t seed_;
  std::mt19937_64 random_;
  Site site_;
  catalog::ReplacedEnvironment replaced_{site_};
  Schedule schedule_;
  Settings settings_;
  layout::Scheme scheme_;
  checkpoint::Run run_{.id = "00000000000000ab", .attempt = 0, .from = {}, .nodes = {}};
  uint32_t ranks_ = 1;
  bool slots_ = false, wipes_ = false, mixes_ = false, calm_ = false, over_ = false;
  uint64_t faults_ = 0;
  std::vector<RankOf> job_;
  std::vector<int> protectors_;
  std::set<int> lost_;
  std::map<std::pair<uint32_t, uint64_t>, std::set<uint32_t>> opened_, closed_;  // by attempt and round: ranks
  std::map<std::tuple<uint32_t, uint64_t, uint32_t>, uint64_t> names_;           // the round, by attempt, step and number of a version
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> rounds_;                     // the same, of the version that is whole
  std::optional<uint64_t> newest_;
  std::optional<std::pair<uint32_t, uint64_t>> promised_;
  std::string failure_;
};

TEST(SharedCheckpoints, are_whole_with_all_bytes_of_all_ranks_or_not_at_all) {
  const uint64_t count = number_from("SIM_SCHEDULES", 200);
  std::map<std::string, uint64_t> done;
  for (uint64_t seed = first_seed(); seed < first_seed() + count && !HasFailure(); ++seed) {
    SharedWorld world(seed);
    const std::string failure = world.run();
    for (const auto& [what, times] : world.done) done[what] += times;
    if (!failure.empty()) ADD_FAILURE() << failure << "\n" << fmt::format("{}", fmt::join(world.notes, "\n"));
  }
  if (count < 100 || HasFailure()) return;
  for (const char* const what :
       {"whole", "begun with one", "ranks killed", "protectors killed", "nodes lost", "nodes wiped", "runs killed", "opened to be read"})
    EXPECT_GE(done[what], count / 6) << what << ": the schedules no longer do this";
}

}  // namespace
}  // namespace holdfast::sim
