// On a busy disk each rank found other targets late, no more than the file can miss, and gave them up; together they were more, and the sync
// lost the write ("4 targets are lost and rs:4+2 tolerates only 2") although all of them answered again.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "engine/members.hpp"
#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

constexpr uint64_t row_bytes = 4 * 4096;
constexpr int rounds = 4;

// Two ranks write rows of their own, in part and whole, alone and together. Rank 0 finds targets 0 and 1 late, rank 1 targets 2 and 3, from
// the call on storage `begin` of the second round on, for `calls` of them.
struct Case {
  std::string scheme = "rs:4+2";
  uint64_t seed = 1;
  int64_t begin = 0, calls = 0;
  Kind kind = Kind::timed_out;
  int patience = 10;
  bool collective = false, other = false, shrinks = false;
  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << (c.collective ? "collective " : "alone ") << (c.other ? "beside another " : "") << (c.shrinks ? "with a cut" : "");
  }
};

class LateOnRanks : public testing::Test {
 protected:
  void run(const Case& how) {
    world_ = World(how.scheme, layout::Placement::interleaved, 6);
    world_.settings.patience = how.patience;
    model_ = {};
    failures_ = 0;
    synced_ = -1;
    Schedule schedule(how.seed);
    Schedule::Group group(2);
    int64_t from = -1;
    int ended = 0;
    for (int rank = 0; rank < 2; ++rank)
      schedule.join(group, rank, schedule.add([&, rank] {
        GroupExchange ranks(schedule, group, rank);
        job(how, rank, ranks, from);
        ++ended;
      }));
    // Makes targets slow, and lets them go.
    schedule.add([&] {
      while (from < 0 && ended < 2) Schedule::yield(true);
      while (world_.gate->calls < from + how.begin && ended < 2) Schedule::yield(true);
      for (int place = 0; place < 4; ++place) world_.gate->fail_on_rank(place, place / 2, how.kind);
      while (world_.gate->calls < from + how.begin + how.calls && ended < 2) Schedule::yield(true);
      for (int place = 0; place < 4; ++place) world_.gate->heal(place);
    });
    schedule.run();
    calls_ = world_.gate->calls - from;
  }

  void job(const Case& how, int rank, exchange::Exchange& ranks, int64_t& from) {
    auto opened = world_.open(ranks, true);
    ASSERT_TRUE(opened.ok()) << opened.status().sentence();
    engine::ProtectedFile& file = **opened;
    std::unique_ptr<exchange::Exchange> alone = exchange::make_solo();
    std::unique_ptr<engine::ProtectedFile> other;
    for (int round = 0; round < rounds; ++round) {
      ranks.barrier();
      if (round == 1 && rank == 0) {
        if (how.other) other = *world_.open(*alone);
        from = world_.gate->calls;
      }
      for (const auto& [row, offset, length] : parts(round, rank)) {
        const Bytes data(length, std::byte(1 + 2 * round + rank));
        const Extent extent{row * row_bytes + offset, length};
        const Status status = how.collective ? file.write_all({&extent, 1}, data) : file.write({&extent, 1}, data);
        EXPECT_TRUE(status.ok() || status.kind() == Kind::lost) << status.sentence();
        failures_ += !status.ok();
        model_.write(extent.offset, data);
      }
      if (round == 0) continue;  // the rows of the first two rounds bear one generation
      ranks.barrier();
      Status status = file.sync();
      if (how.shrinks && round == 2) {
        status = file.set_size(12 * row_bytes + 100);
        if (rank == 0) model_.bytes.resize(12 * row_bytes + 100);
      }
      ranks.barrier();
      failures_ += !status.ok();
      EXPECT_TRUE(status.ok() || status.kind() == Kind::lost) << status.sentence();
      if (status.ok()) synced_ = round;
      const auto failed = ranks.all_max({status.ok(), !status.ok()});
      EXPECT_NE(failed[0], failed[1]) << "some ranks were told that it was synced";
    }
    if (other) failures_ += !other->close().ok();
    failures_ += !file.close().ok();
  }

  struct Part {
    uint64_t row, offset, length;
  };
  static std::vector<Part> parts(int round, int rank) {
    const uint64_t r = uint64_t(rank);
    return {{2 * r, 0, 2 * row_bytes},                                  // the same rows each round
            {4 + uint64_t(round) * 4 + 2 * r, 0, 2 * row_bytes},        // new ones
            {30 + r, 100 + uint64_t(round) * 500, 3000},                // parts of a row
            {32 + uint64_t(round), r * row_bytes / 2, row_bytes / 2}};  // both make it whole
  }

  void expect_whole() {
    auto solo = exchange::make_solo();
    auto reader = world_.open(*solo, false, false);
    ASSERT_TRUE(reader.ok()) << reader.status().sentence();
    Bytes seen(model_.bytes.size());
    const Extent all{0, seen.size()};
    auto got = (*reader)->read({&all, 1}, seen);
    ASSERT_TRUE(got.ok()) << got.status().sentence();
    ASSERT_EQ(*got, seen.size());
    for (size_t at = 0; at < seen.size(); ++at) ASSERT_EQ(seen[at], model_.bytes[at]) << "row " << at / row_bytes << ", byte " << at % row_bytes;
    auto checked = engine::verify(world_.locate(), world_.settings, nullptr);
    ASSERT_TRUE(checked.ok());
    EXPECT_EQ(checked->finding_count, 0u) << checked->findings[0].what << " " << checked->findings[0].detail;
  }
  // After a failure: the rows that each round wrote anew are of the last round that was synced, or of a later one.
  void expect_old_or_new() {
    if (synced_ < 0) return;
    auto solo = exchange::make_solo();
    auto reader = world_.open(*solo, false, false);
    ASSERT_TRUE(reader.ok()) << reader.status().sentence();
    Bytes seen(4 * row_bytes);
    const Extent all{0, seen.size()};
    auto got = (*reader)->read({&all, 1}, seen);
    ASSERT_TRUE(got.ok()) << got.status().sentence();
    for (size_t at = 0; at < seen.size(); ++at) {
      const int rank = at >= 2 * row_bytes, value = int(seen[at]) - 1 - rank;
      ASSERT_TRUE(value % 2 == 0 && value / 2 >= synced_ && value / 2 < rounds)
          << "byte " << at << " is " << int(seen[at]) << " after round " << synced_;
    }
  }

  World world_{"rs:4+2", layout::Placement::interleaved, 6};
  Model model_;
  int synced_ = -1;    // the last round that was
  int failures_ = 0;   // calls that failed
  int64_t calls_ = 0;  // on storage, from the second round on
};

// They are slow while rows are written, and answer again before the sync gives them up.
TEST_F(LateOnRanks, targets_that_answer_again_are_taken_back) {
  for (const bool collective : {false, true})
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      run({.seed = seed, .calls = 60, .collective = collective});
      ASSERT_EQ(failures_, 0);
      ASSERT_NO_FATAL_FAILURE(expect_whole());
    }
}

// The same with a patience of one deadline, and for targets that fail otherwise: what is lost stays so.
TEST_F(LateOnRanks, without_patience_they_are_lost) {
  run({.calls = 60, .patience = 1});
  EXPECT_GT(failures_, 0);
}
TEST_F(LateOnRanks, errors_are_no_lateness) {
  run({.calls = 60, .kind = Kind::io});
  EXPECT_GT(failures_, 0);
}
TEST_F(LateOnRanks, targets_that_do_not_answer_again_are_lost) {
  run({.calls = 1 << 20});
  EXPECT_GT(failures_, 0);
}

// At whatever call they become slow, and for however long: what a sync calls written is, on all ranks.
class LateAtAnyCall : public LateOnRanks, public testing::WithParamInterface<Case> {};

TEST_P(LateAtAnyCall, a_sync_tells_the_truth) {
  int whole = 0, lost = 0;
  run(GetParam());
  ASSERT_EQ(failures_, 0);
  const int64_t calls = calls_;
  for (int64_t begin = 0; begin < calls; begin += 7)
    for (const int64_t length : {5, 20, 80}) {
      SCOPED_TRACE("from call " + std::to_string(begin) + ", for " + std::to_string(length));
      Case how = GetParam();
      how.begin = begin, how.calls = length, how.seed = uint64_t(begin + length);
      run(how);
      failures_ ? ++lost : ++whole;
      failures_ == 0 ? expect_whole() : expect_old_or_new();
      if (HasFailure()) return;
    }
  // Here nobody waits outside syncs, and no time passes in them: some find too many late.
  EXPECT_GT(whole, 2 * lost) << whole << " whole, " << lost << " lost";
}

INSTANTIATE_TEST_SUITE_P(All, LateAtAnyCall,
                         testing::Values(Case{}, Case{.collective = true}, Case{.other = true}, Case{.collective = true, .other = true},
                                         Case{.shrinks = true}, Case{.other = true, .shrinks = true}));

// Another opener's commit has missed one of them meanwhile, and the manifest says so: it is not taken back, the others are.
TEST(LateBesideAnother, a_target_that_others_call_stale_stays_lost) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world("rs:4+2", layout::Placement::interleaved, 6);
    const Bytes part(100, std::byte(99));
    const Extent theirs{5 * row_bytes + 50, part.size()};
    on_ranks(2, seed, [&](int rank, exchange::Exchange& ranks) {
      auto file = *world.open(ranks, true);
      const Extent extent{uint64_t(rank) * 2 * row_bytes, 2 * row_bytes};
      EXPECT_TRUE(file->write({&extent, 1}, Bytes(extent.length, std::byte(1 + rank))).ok());
      for (int place = 2 * rank; place < 2 * rank + 2; ++place) world.gate->fail_on_rank(place, rank, Kind::timed_out);
      EXPECT_TRUE(file->write({&extent, 1}, Bytes(extent.length, std::byte(3 + rank))).ok());
      ranks.barrier();
      if (rank == 0) {
        for (int place = 0; place < 4; ++place) world.gate->heal(place);
        auto alone = exchange::make_solo();
        auto other = *world.open(*alone);
        world.gate->fail_on_rank(0, 0, Kind::io);
        EXPECT_TRUE(other->write({&theirs, 1}, part).ok() && other->close().ok());
        world.gate->heal(0);
      }
      ranks.barrier();
      const Status synced = file->sync();
      EXPECT_TRUE(synced.ok()) << synced.sentence();
      EXPECT_EQ(file->lost_members(), std::vector<int>{0});
      EXPECT_TRUE(file->close().ok());
    });
    auto alone = exchange::make_solo();
    auto reader = *world.open(*alone, false, false);
    Bytes seen(6 * row_bytes);
    const Extent all{0, seen.size()};
    ASSERT_TRUE(reader->read({&all, 1}, seen).ok());
    for (uint64_t at = 0; at < 4 * row_bytes; ++at) ASSERT_EQ(seen[at], std::byte(at < 2 * row_bytes ? 3 : 4)) << "byte " << at;
    ASSERT_EQ(seen[theirs.offset], part[0]);
  }
}

// In a lane: a member has come back when its late call has ended, and only if it ended well.
class LateCall : public testing::Test {
 protected:
  static constexpr std::chrono::milliseconds deadline{200};

  catalog::Located one_member() {
    catalog::Located located;
    located.manifest.geometry.scheme = layout::Scheme{.k = 1, .m = 1, .mirror = true};
    catalog::Member member;
    member.target = target::make_memory_target(std::make_shared<target::MemoryDirectory>(), "t");
    member.lane = target::make_companion_lane("t", deadline);
    located.manifest.members.emplace_back();
    located.members.push_back(std::move(member));
    return located;
  }
  void be_late(Status says) {
    members_.each([&](int) -> engine::MemberCall {
      return [open = gate_.get_future().share(), says](engine::MemberHandle&) {
        open.wait();
        return says;
      };
    });
    EXPECT_EQ(members_.losses(), std::vector<int64_t>{1});
    EXPECT_FALSE(members_.has_come_back(0));
    EXPECT_EQ(members_.losses(), std::vector<int64_t>{1});
    gate_.set_value();
  }
  // Within some time.
  bool comes_back() {
    for (int look = 0; look < 1000; ++look) {
      if (members_.has_come_back(0)) return true;
      if (members_.losses()[0] != 1) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  std::promise<void> gate_;
  engine::Members members_{one_member(), 10};
};

TEST_F(LateCall, that_ended_well_lets_the_member_be_taken_back) {
  be_late(Status());
  ASSERT_TRUE(comes_back());
  members_.take_back(0);
  EXPECT_TRUE(members_.available(0));
  members_.each([](int) -> engine::MemberCall { return [](engine::MemberHandle&) { return Status(); }; });
  EXPECT_TRUE(members_.available(0));
}

// The next fsync would say nothing of what this one has lost.
TEST_F(LateCall, that_failed_makes_the_member_lost_for_good) {
  be_late(Status(Kind::io, "the device is gone"));
  EXPECT_FALSE(comes_back());
  EXPECT_EQ(members_.losses(), std::vector<int64_t>{2});
}

}  // namespace
}  // namespace holdfast::sim
