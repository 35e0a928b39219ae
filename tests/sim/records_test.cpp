// The record logs of shared file pointers: ranks as threads with clocks that differ, random writes, merges, claims, crashes at
// every n-th call on storage; what is left is merged as `holdfast merge` does it and compared with what was acknowledged.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "exchange/agree.hpp"
#include "layers/shared_records/left_records.hpp"
#include "layers/shared_records/shared_records.hpp"
#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

using layers::Clock;
using layers::LeftRecords;
using layers::LeftSession;
using layers::SharedRecords;
using layers::Shelf;

// True time: goes on with each reading. Each rank sees it through its own offset and drift.
class FakeTime final : public layers::TimeSource {
 public:
  FakeTime(std::shared_ptr<std::atomic<int64_t>> truth, int64_t offset, double drift, std::string node)
      : truth_(std::move(truth)), offset_(offset), drift_(drift), node_(std::move(node)) {}
  int64_t now_ns() override {
    const int64_t now = truth_->fetch_add(700) + 700;
    return offset_ + now + int64_t(drift_ * double(now));
  }
  std::string node() override { return node_; }

 private:
  std::shared_ptr<std::atomic<int64_t>> truth_;
  int64_t offset_;
  double drift_;
  std::string node_;
};

constexpr uint64_t record_magic = 0xfeedface12345678;
struct Head {
  uint64_t magic = record_magic;
  uint32_t rank = 0, ordered = 0;
  uint64_t number = 0, length = 0;
};

Bytes record_of(int rank, uint64_t number, uint64_t extra_words, bool ordered = false) {
  Head head{record_magic, uint32_t(rank), ordered, number, sizeof(Head) + 8 * extra_words};
  Bytes bytes(head.length);
  std::memcpy(bytes.data(), &head, sizeof head);
  for (uint64_t i = sizeof head; i < head.length; ++i) bytes[i] = std::byte(1 + (uint64_t(rank) * 31 + number * 7 + i) % 255);
  return bytes;
}

// The plain main file, the record logs beside it or on three targets, and the shared pointer.
struct RecordWorld {
  explicit RecordWorld(int holders) {
    main_directory = std::make_shared<target::MemoryDirectory>();
    for (int i = 0; i < holders; ++i) directories.push_back(std::make_shared<target::MemoryDirectory>());
    for (auto& directory : directories) (void)target::make_memory_target(directory, "t")->make_directory("out.records");
  }
  std::shared_ptr<Shelf> shelf() {
    std::vector<Shelf::Holder> holders;
    for (size_t i = 0; i < directories.size(); ++i) {
      if (gone.contains(int(i))) continue;
      auto target = std::make_shared<GatedTarget>(target::make_memory_target(directories[i], "t" + std::to_string(i)), gate, int(i));
      holders.push_back({target, directories.size() > 1 ? target::make_inline_lane() : nullptr, "out.records/"});
    }
    return std::make_shared<Shelf>(holders, directories.size() > 1 ? 2 : 1, "/t0/out.records");
  }
  std::shared_ptr<target::Object> main() {
    auto target = std::make_shared<GatedTarget>(target::make_memory_target(main_directory, "main"), gate, 9);
    auto object = target->open("out", target::OpenMode::create);
    return object.ok() ? *object : nullptr;
  }
  Bytes content() {
    auto object = target::make_memory_target(main_directory, "main")->open("out", target::OpenMode::create);
    Bytes bytes(*(*object)->size());
    iovec vector{bytes.data(), bytes.size()};
    (void)(*object)->read(0, std::span<const iovec>(&vector, 1));
    return bytes;
  }
  void after_crash(std::optional<uint64_t> power_seed = {}) {
    gate = std::make_shared<Gate>();
    main_directory->release_locks();
    if (power_seed) main_directory->power_loss(*power_seed);
    for (auto& directory : directories) {
      directory->release_locks();
      if (power_seed) directory->power_loss(++*power_seed);
    }
  }
  std::shared_ptr<target::MemoryDirectory> main_directory;
  std::vector<std::shared_ptr<target::MemoryDirectory>> directories;
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::set<int> gone;
  std::atomic<uint64_t> pointer{0};
  std::atomic<int64_t> room{std::numeric_limits<int64_t>::max()};  // so many more writes to the main file; then it is full
  bool was_full() const { return room < 0; }
};

struct Written {
  uint64_t number = 0;
  int64_t before = 0, after = 0;  // true time
  uint64_t phase = 0;             // collective calls before it
  uint64_t uncertainty = 0;
};

struct Outcome {
  std::vector<std::vector<Written>> acknowledged, durable;  // by rank
  std::vector<uint64_t> attempted;
  std::vector<char> refused;  // by rank: the merge at close
  bool closed = false;
};

struct Job {
  int ranks = 3;
  uint64_t seed = 1;
  bool later = false;
  bool one_node = false;
  uint64_t max_metadata = 4;
  bool claims = true;
  uint64_t stage_bytes = 0;                                     // 0: every entry is written to its place at once
  int64_t room_at_close = std::numeric_limits<int64_t>::max();  // how often the merge at close can write to the main file
};

Status write_main(const std::shared_ptr<target::Object>& main, std::span<const Extent> extents, ByteView packed) {
  if (!main) return Status(Kind::io, "no main file");
  uint64_t at = 0;
  for (const Extent& extent : extents) {
    iovec vector{const_cast<std::byte*>(packed.data() + at), extent.length};
    HF_TRY(main->write(extent.offset, std::span<const iovec>(&vector, 1)));
    at += extent.length;
  }
  return Status();
}

// One rank of a job that writes through the shared pointer.
class Rank {
 public:
  Rank(RecordWorld& world, const Job& job, int rank, exchange::Exchange& ranks, std::shared_ptr<std::atomic<int64_t>> truth, Outcome& outcome)
      : world_(world),
        job_(job),
        rank_(rank),
        ranks_(ranks),
        truth_(std::move(truth)),
        outcome_(outcome),
        random_(job.seed * 1000 + uint64_t(rank)) {}

  void run() {
    main_ = world_.main();
    const double drift = job_.one_node ? 0 : (rank_ % 2 ? 50e-6 : -50e-6);
    auto clock = std::make_shared<Clock>(
        std::make_shared<FakeTime>(truth_, job_.one_node ? 5 : rank_ * 1'000'000'007LL, drift, job_.one_node ? "n" : "n" + std::to_string(rank_)));
    layers::RecordOptions options;
    options.max_metadata_records = job_.max_metadata;
    options.staging = {job_.stage_bytes, 2};
    layout::Session session;
    session.path = "/data/out";
    std::string notice;
    auto opened = SharedRecords::open(ranks_, session, world_.shelf(), clock, options, notice);
    if (!opened) return;
    records_ = std::move(*opened);
    std::mt19937_64 together(job_.seed);  // the same on all ranks
    for (int phase = 0; phase < 6; ++phase) {
      independent(1 + random_() % 9);
      if (!collective(together() % (job_.later ? 3 : 4))) return;
      ++phase_;
    }
    finish();
  }

 private:
  layers::Place place() {
    return [this](std::span<const Extent> extents, ByteView packed) {
      if (--world_.room < 0) return Status(Kind::no_space, "no space left on device", ENOSPC);
      return write_main(main_, extents, packed);
    };
  }
  std::function<Result<uint64_t>()> pointer() {
    return [this]() -> Result<uint64_t> { return world_.pointer.load(); };
  }

  void independent(uint64_t writes) {
    for (uint64_t i = 0; i < writes; ++i) {
      const Bytes record = record_of(rank_, outcome_.attempted[size_t(rank_)], random_() % 40);
      Written written{outcome_.attempted[size_t(rank_)]++, *truth_, 0, phase_, 0};
      if (!records_->append(record, pointer()).ok() || world_.gate->dead()) return;
      written.after = *truth_;
      written.uncertainty = records_->largest_uncertainty_ns();
      outcome_.acknowledged[size_t(rank_)].push_back(written);
      if (job_.claims && random_() % 12 == 0 && !claim()) return;
    }
  }
  // What happens before a read of this rank alone.
  bool claim() {
    return records_->place_own([this](uint64_t bytes) -> Result<uint64_t> { return world_.pointer.fetch_add(bytes); }, place()).ok();
  }
  Status sync_main() {
    Status status = main_ ? main_->sync() : Status(Kind::io, "no main file");
    return exchange::agree(ranks_, status);
  }
  void all_durable() {
    if (!world_.gate->dead()) outcome_.durable[size_t(rank_)] = outcome_.acknowledged[size_t(rank_)];
  }

  bool merge() {
    ranks_.barrier();
    auto merged = records_->merge(ranks_, world_.pointer, place(), [this] { return sync_main(); });
    if (!merged) return false;
    ranks_.barrier();
    if (rank_ == 0) world_.pointer = merged->end;
    ranks_.barrier();
    return true;
  }
  bool collective(uint64_t what) {
    if (what == 0 && job_.later) {  // ordered, to be merged later
      const Bytes record = record_of(rank_, outcome_.attempted[size_t(rank_)], random_() % 9, true);
      const Written written{outcome_.attempted[size_t(rank_)]++, *truth_, *truth_, phase_, 0};
      if (!records_->append_ordered(ranks_, record, pointer()).ok()) return false;
      if (!world_.gate->dead()) outcome_.acknowledged[size_t(rank_)].push_back(written);
      return true;
    }
    if (what == 1 && job_.later) {
      if (!records_->sync(ranks_).ok() || !sync_main().ok()) return false;
      all_durable();
      return true;
    }
    if (!merge()) return false;
    if (what > 1) return true;
    if (!sync_main().ok()) return false;
    if (!records_->forget_placed(ranks_).ok()) return false;
    all_durable();
    return true;
  }
  void finish() {
    ranks_.barrier();
    if (rank_ == 0) world_.room = job_.room_at_close;
    ranks_.barrier();
    if (!job_.later && !merge()) {
      // The close fails on all ranks, and leaves the records in the logs.
      outcome_.refused[size_t(rank_)] = true;
      if (records_->close(ranks_, false, {}).ok()) all_durable();
      return;
    }
    if (!sync_main().ok()) return;
    if (!records_->close(ranks_, true, {}).ok()) return;
    all_durable();
    if (rank_ == 0) outcome_.closed = true;
  }

  RecordWorld& world_;
  const Job& job_;
  int rank_;
  exchange::Exchange& ranks_;
  std::shared_ptr<std::atomic<int64_t>> truth_;
  Outcome& outcome_;
  std::mt19937_64 random_;
  std::shared_ptr<target::Object> main_;
  std::unique_ptr<SharedRecords> records_;
  uint64_t phase_ = 0;
};

Outcome run_job(RecordWorld& world, const Job& job) {
  Outcome outcome;
  outcome.acknowledged.resize(size_t(job.ranks));
  outcome.durable.resize(size_t(job.ranks));
  outcome.attempted.resize(size_t(job.ranks));
  outcome.refused.resize(size_t(job.ranks));
  auto truth = std::make_shared<std::atomic<int64_t>>(1'000'000'000'000);
  on_ranks(job.ranks, job.seed, [&](int rank, exchange::Exchange& ranks) { Rank(world, job, rank, ranks, truth, outcome).run(); });
  return outcome;
}

// As the command does it: zeros are filled where a placed record may have been lost.
Status merge_left(RecordWorld& world) {
  auto left = LeftRecords::find(world.shelf(), [](const std::string&) { return Status(Kind::not_found, "no common logs here"); });
  if (!left) return left.status();
  auto main = world.main();
  if (!main) return Status(Kind::io, "no main file");
  for (const LeftSession& session : std::vector<LeftSession>((*left)->sessions())) {
    HF_TRY((*left)->check_not_running(session));
    auto place = [&](const layout::SessionView&, std::span<const Extent> extents, ByteView packed, bool filling) -> Status {
      Bytes mixed(packed.begin(), packed.end());
      uint64_t at = 0;
      for (const Extent& extent : extents) {
        Bytes there(extent.length);
        iovec vector{there.data(), there.size()};
        auto got = main->read(extent.offset, std::span<const iovec>(&vector, 1));
        if (!got) return got.status();
        if (filling) layers::keep_what_is_there(ByteSpan(mixed).subspan(at, extent.length), ByteView(there).first(*got), extent.offset);
        at += extent.length;
      }
      return write_main(main, extents, mixed);
    };
    auto merged = (*left)->merge(session, true, place, nullptr);
    if (!merged) return merged.status();
    HF_TRY(main->sync());
    HF_TRY((*left)->discard(session));
  }
  return Status();
}

struct Found {
  Head head;
  uint64_t at = 0;
};

// The records of the file, each whole and as it was written; zeros between them are places that a dying process had taken.
// With `torn_allowed` also what is left of records that no sync had covered when the power failed.
void parse(const Bytes& content, std::vector<Found>& found, uint64_t& gaps, bool torn_allowed) {
  for (uint64_t at = 0; at < content.size();) {
    Head head;
    if (at + sizeof head > content.size()) {
      ++gaps;
      break;
    }
    std::memcpy(&head, content.data() + at, sizeof head);
    if (head.magic != record_magic) {
      ++gaps;
      at += 8;
      continue;
    }
    if (torn_allowed && (head.length < sizeof head || head.length > content.size() - at)) {
      at += 8;
      continue;
    }
    ASSERT_LE(at + head.length, content.size()) << "a record is cut off at byte " << at;
    const Bytes expected = record_of(int(head.rank), head.number, (head.length - sizeof head) / 8, head.ordered);
    if (torn_allowed && std::memcmp(expected.data(), content.data() + at, head.length) != 0) {
      at += 8;
      continue;
    }
    ASSERT_EQ(std::memcmp(expected.data(), content.data() + at, head.length), 0) << "a record is not as it was written, at byte " << at;
    found.push_back({head, at});
    at += head.length;
  }
}

// `all`: every record that was acknowledged must be there; otherwise those that a sync covered.
void check(RecordWorld& world, const Job& job, const Outcome& outcome, bool all, bool gaps_allowed) {
  std::vector<Found> found;
  uint64_t gaps = 0;
  parse(world.content(), found, gaps, !all);
  if (::testing::Test::HasFatalFailure()) return;
  if (!gaps_allowed) {
    EXPECT_EQ(gaps, 0u);
  }
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> at;
  for (const Found& f : found) {
    ASSERT_LT(f.head.rank, uint32_t(job.ranks));
    // What no sync had covered when the power failed has no place that is known: it may be there, torn, or twice.
    const auto& durable = outcome.durable[f.head.rank];
    if (!all && std::none_of(durable.begin(), durable.end(), [&](const Written& w) { return w.number == f.head.number; })) continue;
    EXPECT_TRUE(at.emplace(std::pair(f.head.rank, f.head.number), f.at).second)
        << "rank " << f.head.rank << " record " << f.head.number << " is there twice";
    EXPECT_LT(f.head.number, outcome.attempted[f.head.rank]);
  }
  for (int rank = 0; rank < job.ranks; ++rank) {
    const auto& promised = (all ? outcome.acknowledged : outcome.durable)[size_t(rank)];
    for (const Written& written : promised) {
      auto it = at.find({uint32_t(rank), written.number});
      ASSERT_TRUE(it != at.end()) << "rank " << rank << " record " << written.number << " is lost";
    }
    uint64_t last = 0;
    for (uint64_t number = 0; number < outcome.attempted[size_t(rank)]; ++number) {
      auto it = at.find({uint32_t(rank), number});
      if (it == at.end()) continue;
      EXPECT_TRUE(last == 0 || it->second > last) << "rank " << rank << " record " << number << " is out of its process's order";
      last = it->second;
    }
  }
}

// Records that no claim has moved lie in the order of true time, as exactly as was said.
void check_order(RecordWorld& world, const Outcome& outcome) {
  std::vector<Found> found;
  uint64_t gaps = 0;
  parse(world.content(), found, gaps, false);
  std::map<std::pair<uint32_t, uint64_t>, Written> written;
  for (size_t rank = 0; rank < outcome.acknowledged.size(); ++rank)
    for (const Written& w : outcome.acknowledged[rank]) written[{uint32_t(rank), w.number}] = w;
  int64_t latest_begin = 0;
  uint64_t latest_uncertainty = 0, phase = 0;
  for (const Found& f : found) {
    const Written& w = written.at({f.head.rank, f.head.number});
    EXPECT_GE(w.phase, phase) << "a record passed a collective call";
    if (w.phase > phase) latest_begin = 0, latest_uncertainty = 0;
    phase = std::max(phase, w.phase);
    if (f.head.ordered) continue;
    EXPECT_GE(w.after + int64_t(w.uncertainty + latest_uncertainty), latest_begin) << "rank " << f.head.rank << " record " << f.head.number;
    if (w.before > latest_begin) latest_begin = w.before, latest_uncertainty = w.uncertainty;
  }
}

TEST(Records, of_a_job_that_ends_are_in_the_file_once_and_in_order) {
  for (int ranks : {1, 2, 4})
    for (bool later : {false, true})
      for (int holders : {1, 3})
        for (uint64_t seed = 1; seed <= 10; ++seed) {
          SCOPED_TRACE(std::to_string(ranks) + " ranks, later " + std::to_string(later) + ", holders " + std::to_string(holders) + ", seed " +
                       std::to_string(seed));
          RecordWorld world(holders);
          const Job job{ranks, seed, later, seed % 2 == 0, 1 + seed % 7, true, seed % 3 * 4096};
          const Outcome outcome = run_job(world, job);
          ASSERT_TRUE(outcome.closed);
          if (later) {
            const Status status = merge_left(world);
            ASSERT_TRUE(status.ok()) << status.sentence();
          }
          check(world, job, outcome, true, false);
          // Nothing is left beside it.
          for (auto& directory : world.directories) EXPECT_TRUE(directory->object_names().empty());
          if (HasFailure()) return;
        }
}

TEST(Records, are_in_the_order_of_true_time_within_the_uncertainty_that_is_stated) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RecordWorld world(1);
    // Without claims, which come before what other ranks have pending.
    const Job job{4, seed, seed % 3 == 0, seed % 2 == 0, 65536, false};
    const Outcome outcome = run_job(world, job);
    ASSERT_TRUE(outcome.closed);
    if (job.later) {
      ASSERT_TRUE(merge_left(world).ok());
    }
    check(world, job, outcome, true, false);
    check_order(world, outcome);
    if (HasFailure()) return;
  }
}

// The job dies at every n-th call on storage; then the logs are merged, and that is killed at every n-th call too.
void sweep(bool power, int holders, bool later, uint64_t stride) {
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    bool fired = true;
    for (int64_t n = 1 + int64_t(seed); fired; n += int64_t(stride)) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", dies at call " + std::to_string(n) + (power ? ", power fails" : "") +
                   (later ? ", later" : ""));
      RecordWorld world(holders);
      const Job job{3, seed, later, true, 3, true, seed == 2 ? 8192u : 0u};
      world.gate->die_at = n;
      const Outcome outcome = run_job(world, job);
      fired = world.gate->dead();
      world.after_crash(power ? std::optional<uint64_t>(uint64_t(n)) : std::nullopt);
      if (holders > 1) world.gone.insert(int(n % holders));
      // Merging dies as well, again and again, each time a little later.
      for (int64_t m = 1;; m += 2) {
        world.gate->die_at = m;
        const Status status = merge_left(world);
        const bool died = world.gate->dead();
        world.after_crash(power ? std::optional<uint64_t>(uint64_t(n * 131 + m)) : std::nullopt);
        if (died) continue;
        ASSERT_TRUE(status.ok()) << status.sentence();
        break;
      }
      check(world, job, outcome, !power, true);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(Records, that_a_full_disk_keeps_out_at_close_stay_in_the_logs_and_are_merged_when_there_is_room) {
  for (uint64_t seed = first_seed(); seed < first_seed() + 12; ++seed) {
    bool full = true;
    for (int64_t room = 0; full; ++room) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", room for " + std::to_string(room) + " writes at close");
      RecordWorld world(seed % 2 ? 1 : 3);
      Job job{3, seed, false, true, seed % 3 ? 4u : 1000u, seed % 2 == 0, seed % 4 == 0 ? 8192u : 0u};
      job.room_at_close = room;
      const Outcome outcome = run_job(world, job);
      full = world.was_full();
      EXPECT_EQ(outcome.refused, std::vector<char>(3, full)) << "all ranks are told";
      EXPECT_EQ(outcome.closed, !full);
      if (full) {
        world.room = std::numeric_limits<int64_t>::max();
        world.after_crash(room % 2 ? std::optional<uint64_t>(seed * 977 + uint64_t(room)) : std::nullopt);
        const Status merged = merge_left(world);
        ASSERT_TRUE(merged.ok()) << merged.sentence();
      }
      check(world, job, outcome, room % 2 == 0 || !full, false);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// One process by itself that logs records of which each has eight words.
class Lone {
 public:
  explicit Lone(RecordWorld& world) : world_(world) {}
  void open() {
    auto clock = std::make_shared<Clock>(std::make_shared<FakeTime>(std::make_shared<std::atomic<int64_t>>(1'000'000'000), 0, 0, "n"));
    layout::Session session;
    session.path = "/data/out";
    auto opened = SharedRecords::open(*alone_, session, world_.shelf(), clock, {}, notice);
    ASSERT_TRUE(opened.ok()) << opened.status().sentence();
    records_ = std::move(*opened);
    main_ = world_.main();
  }
  void append(uint64_t number) {
    ASSERT_TRUE(records_->append(record_of(0, number, 8), [] { return Result<uint64_t>(0); }).ok());
  }
  // As far as the bytes are in the main file, where the power may fail.
  void merge_at(uint64_t base) {
    ASSERT_TRUE(records_
                    ->merge(
                        *alone_, base, [this](auto extents, ByteView packed) { return write_main(main_, extents, packed); }, nullptr)
                    .ok());
  }
  void sync() { ASSERT_TRUE(records_->sync(*alone_).ok()); }
  void leave() { ASSERT_TRUE(records_->close(*alone_, false, {}).ok()); }
  std::string notice;

 private:
  RecordWorld& world_;
  std::unique_ptr<exchange::Exchange> alone_ = exchange::make_solo();
  std::unique_ptr<SharedRecords> records_;
  std::shared_ptr<target::Object> main_;
};

std::vector<LeftSession> sessions_left(RecordWorld& world) {
  auto left = LeftRecords::find(world.shelf(), [](const std::string&) { return Status(Kind::not_found, "no common logs here"); });
  EXPECT_TRUE(left.ok()) << left.status().sentence();
  return left.ok() ? (*left)->sessions() : std::vector<LeftSession>();
}

TEST(Records, of_an_earlier_job_stay_superseded_by_the_note_of_the_next_one) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    RecordWorld world(1);
    Lone first(world), second(world);
    first.open(), first.append(0), first.leave();
    second.open();
    EXPECT_NE(second.notice, "");
    world.after_crash(seed);
    const std::vector<LeftSession> left = sessions_left(world);
    ASSERT_EQ(left.size(), 2u) << "seed " << seed;
    EXPECT_TRUE(left[0].superseded);
  }
}

TEST(Records, that_were_synced_are_placed_only_where_they_are_found_again) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    RecordWorld world(1);
    Lone job(world);
    job.open(), job.append(0), job.sync(), job.merge_at(4096);
    world.after_crash(seed);
    ASSERT_TRUE(merge_left(world).ok());
    std::vector<Found> found;
    uint64_t gaps = 0;
    parse(world.content(), found, gaps, true);
    ASSERT_EQ(found.size(), 1u) << "seed " << seed;
    EXPECT_EQ(found[0].at, 4096u);
  }
}

TEST(Records, are_merged_under_a_note_that_the_main_file_is_no_more_as_it_was_left) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    RecordWorld world(1);
    Lone job(world);
    job.open(), job.append(0), job.leave();
    ASSERT_TRUE(sessions_left(world).at(0).note.closed);
    {
      auto left = LeftRecords::find(world.shelf(), [](const std::string&) { return Status(Kind::not_found, "no common logs here"); }).value();
      const auto full = [](const layout::SessionView&, std::span<const Extent>, ByteView, bool) { return Status(Kind::no_space, "full", ENOSPC); };
      ASSERT_FALSE(left->merge(left->sessions().at(0), true, full, nullptr).ok());
    }
    world.after_crash(seed);
    EXPECT_FALSE(sessions_left(world).at(0).note.closed) << "seed " << seed;
  }
}

TEST(Records, of_a_killed_job_are_all_merged_afterwards) { sweep(false, 1, false, 3); }
TEST(Records, of_a_killed_job_that_merges_later_are_all_merged_afterwards) { sweep(false, 1, true, 3); }
TEST(Records, of_a_killed_job_survive_a_lost_target) { sweep(false, 3, true, 5); }
TEST(Records, that_were_synced_survive_a_power_failure) { sweep(true, 1, false, 3); }
TEST(Records, that_were_synced_in_the_logs_survive_a_power_failure) { sweep(true, 1, true, 3); }

}  // namespace
}  // namespace holdfast::sim
