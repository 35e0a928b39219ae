// All nodes that knew of an attempt were away when the next one began, which was given the same number. When they came back the files of both counted as one
// checkpoint: one whole step of two histories. Found by the simulator, seed 5774.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "catalog/user_files.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/drain.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/roll.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/pool_on_site.hpp"

namespace holdfast::checkpoint {
namespace {

using Front = frontend::posix::Checkpoints;
using Nodes = std::set<int>;

const Nodes of_first = {0, 1}, of_second = {2, 3};

// Of four nodes the first two see the first attempt, and the others the second one. Each has two ranks, on its nodes.
class OneNumber : public ::testing::Test {
 protected:
  OneNumber() {
    settings.checkpoint = {"/data/ck.{step}.{rank}"};
    first = begin(of_second, 1);
    second = begin(of_first, 2);
    away({});
    EXPECT_EQ(first.attempt.number, 1u);
    EXPECT_EQ(second.attempt.number, 1u) << "nobody knows of the first one";
  }
  void away(const Nodes& nodes) {
    for (int node = 0; node < 4; ++node) {
      if (nodes.contains(node)) site.gate->fail(sim::Site::gate_number(node), Kind::timed_out);
      else site.gate->heal(sim::Site::gate_number(node));
    }
  }
  Survey survey() const { return *Surveyor(settings.local, settings.deadline_ms).look(id); }
  checkpoint::Run begin(const Nodes& lost, uint64_t second_of_day) {
    away(lost);
    const auto now = std::chrono::system_clock::time_point(std::chrono::seconds(second_of_day));
    checkpoint::Run run{.id = id, .attempt = next_attempt(survey(), id, 0, new_attempt_id(now)), .from = {}, .nodes = settings.local};
    for (int node = 0; node < 4; ++node) EXPECT_TRUE(lost.contains(node) || files_of(run, node).make().ok());
    return run;
  }
  LocalFiles files_of(const checkpoint::Run& run, int node) const { return LocalFiles("/n" + std::to_string(node + 1), id, run.attempt); }
  bool is_first(const checkpoint::Run& run) const { return run.attempt == first.attempt; }
  static std::string path(uint64_t step, uint32_t rank) { return "/data/ck." + std::to_string(step) + "." + std::to_string(rank); }

  // By a rank of that attempt, on its node.
  void write(const checkpoint::Run& run, uint64_t step, uint32_t rank) {
    const std::string content = is_first(run) ? "first" : "second";
    ASSERT_TRUE(catalog::replace_file("/data/source", "/data/source.new", content, 0600, false).ok());
    const layout::Version version{id, run.attempt, step, rank, 2, 1, path(step, rank), step};
    const auto done = protect("/data/source", version, settings.local[size_t(rank + (is_first(run) ? 0 : 2))], settings);
    ASSERT_TRUE(done.ok()) << done.status().sentence();
  }
  void write_all(const checkpoint::Run& run, uint64_t step) {
    for (const uint32_t rank : {0u, 1u}) write(run, step, rank);
  }
  void drain_newest() {
    const Survey now = survey();
    const Checkpoint* const newest = newest_whole(now.checkpoints, id);
    ASSERT_NE(newest, nullptr);
    const auto files = manifests_of(*newest, now.versions);
    ASSERT_TRUE(drain(files, own_place, settings, [](uint64_t, uint64_t) { return true; }).ok());
    ASSERT_TRUE(keep_record(*drained_now(files, newest->ages()), settings.local, settings.deadline_ms).ok());
  }
  // By a rank of an attempt that has begun with that step.
  std::string read(const checkpoint::Run& from, uint64_t step, uint32_t rank) {
    checkpoint::Run run = from;
    run.attempt = {9, from.attempt.id + (1u << drawn_bits_of_attempt) * (is_first(from) ? 1'000'000u : 2'000'000u)};
    run.from = checkpoint::Run::From{from.attempt, step};
    const auto front = Front::make(settings, *Patterns::parse(settings.checkpoint), run, {rank, 2, settings.local[rank]});
    const auto sight = front->look(*front->match(path(step, rank)));
    if (!sight || sight->what != Front::Sight::local) return sight ? "nothing" : sight.status().sentence();
    return *catalog::read_small(sight->path, 100);
  }

  const std::string id = "00000000000000ab";
  sim::PoolOnSite pool{1, 4};
  sim::Site& site = pool.site;
  Settings& settings = pool.settings;
  checkpoint::Run first, second;
};

TEST_F(OneNumber, makes_no_checkpoint_of_two_halves) {
  write(first, 10, 0);
  write(second, 10, 1);
  const Survey now = survey();
  EXPECT_EQ(now.checkpoints.size(), 2u);
  for (const Checkpoint& one : now.checkpoints) EXPECT_FALSE(one.has_all()) << one.files.size() << " files";
  EXPECT_FALSE(beginning_of(now, id).from) << "no checkpoint is whole";
  for (const Standing& one : standings_of(now)) EXPECT_EQ(one.files, 1u);
}

// Both are whole, and of one step: the later attempt's is the newest. While its nodes are away the other one is.
TEST_F(OneNumber, has_two_whole_checkpoints_of_one_step) {
  write_all(first, 10);
  write_all(second, 10);
  EXPECT_EQ(beginning_of(survey(), id).from, (checkpoint::Run::From{second.attempt, 10}));
  EXPECT_EQ(read(second, 10, 0), "second");
  EXPECT_EQ(read(first, 10, 1), "first");
  for (const Checkpoint& one : survey().checkpoints) EXPECT_TRUE(one.whole() && one.rivals.empty()) << text_of(one.attempt);
  away(of_second);
  EXPECT_EQ(beginning_of(survey(), id).from, (checkpoint::Run::From{first.attempt, 10}));
  away(of_first);
  EXPECT_EQ(beginning_of(survey(), id).from, (checkpoint::Run::From{second.attempt, 10}));
}

// A higher step, or a higher number, of an attempt that began before is older all the same.
TEST_F(OneNumber, is_gone_on_from_by_the_attempt_that_began_last) {
  write_all(first, 30);
  checkpoint::Run after_first = first;
  after_first.attempt = {2, first.attempt.id + 1};
  write_all(after_first, 40);
  write_all(second, 10);
  EXPECT_EQ(beginning_of(survey(), id).from, (checkpoint::Run::From{second.attempt, 10}));
  const layout::Attempt next = next_attempt(survey(), id, 0, 1);
  EXPECT_EQ(next.number, 3u);
  EXPECT_LT(second.attempt, next) << "also where the clock is late";
}

TEST_F(OneNumber, is_dropped_one_by_one) {
  write_all(first, 10);
  write_all(second, 10);
  Surveyor surveyor(settings.local, settings.deadline_ms);
  const auto all = *surveyor.look_at_versions();
  const auto old = to_drop(all, id, 1);
  ASSERT_EQ(old.size(), 2u);
  for (const Protected& one : old) {
    EXPECT_EQ(one.version.attempt, first.attempt);
    const auto name = files_of(second, 2).path(State::kept, name_of(one.version));
    ASSERT_TRUE(catalog::make_file(name, 0600).ok());
    ASSERT_TRUE(drop(*surveyor.manifest_of(one.file_id), second.attempt, settings).ok());
    EXPECT_TRUE(catalog::look(name, false).ok()) << "the second one's copy of that name";
  }
  EXPECT_EQ(survey().checkpoints.size(), 1u);
  EXPECT_EQ(read(second, 10, 0), "second");
}

TEST_F(OneNumber, has_local_files_of_its_own) {
  const LocalName name{10, 0, 2, 1, path(10, 0), 1, 1};
  ASSERT_TRUE(files_of(first, 0).make().ok());
  ASSERT_TRUE(files_of(second, 0).make().ok());
  ASSERT_TRUE(catalog::make_file(files_of(first, 0).path(State::writing, name), 0600).ok());
  EXPECT_EQ(files_of(second, 0).last_number(name.file), 0u);
  ASSERT_TRUE(catalog::make_file(files_of(second, 2).path(State::writing, name), 0600).ok());
  std::map<layout::Attempt, std::string> states;
  for (const Standing& one : standings_of(survey())) states[one.attempt] = one.state;
  EXPECT_EQ(states, (std::map<layout::Attempt, std::string>{{first.attempt, "quarantined"}, {second.attempt, "writing"}}));
}

TEST_F(OneNumber, has_a_record_of_its_own_of_what_was_drained) {
  write_all(first, 10);
  drain_newest();
  const auto of_the_first = survey().drained;
  ASSERT_EQ(of_the_first.size(), 1u);
  EXPECT_EQ(of_the_first[0].attempt, first.attempt);
  write_all(second, 10);
  EXPECT_EQ(beginning_of(survey(), id).from, (checkpoint::Run::From{second.attempt, 10})) << "not what was drained before";
  drain_newest();
  const auto now = survey().drained;
  ASSERT_EQ(now.size(), 1u) << "the files of the first drain are replaced";
  EXPECT_EQ(now[0].attempt, second.attempt);
}

// Of before there were ids: another attempt than one of that number that has one, and an older one.
TEST_F(OneNumber, may_have_no_id) {
  checkpoint::Run before = first;
  before.attempt = 1;
  write(before, 10, 0);
  write(second, 10, 1);
  for (const Checkpoint& one : survey().checkpoints) EXPECT_FALSE(one.has_all());
  write(before, 10, 1);
  EXPECT_EQ(beginning_of(survey(), id).from, (checkpoint::Run::From{1, 10})) << "the second one's is not whole";
  write(second, 10, 0);
  EXPECT_EQ(beginning_of(survey(), id).from, (checkpoint::Run::From{second.attempt, 10}));
}

}  // namespace
}  // namespace holdfast::checkpoint
