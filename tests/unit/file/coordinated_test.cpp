// One file and several replicas, with a leader that dies before, within or after each of its acts, on a disk that keeps or forgets what the
// dead one had not synced: what the survivors have seen, and what lies on the disk, is what one process by itself would have had.
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <thread>

#include "coding/checksum.hpp"
#include "file/coordinated/coordinated.hpp"
#include "file/coordinated/names.hpp"
#include "unit/file/fake_parts.hpp"
#include "unit/file/some_program.hpp"

namespace holdfast::file::test {
namespace {

constexpr uint64_t subject = 17;

class Plain final : public FileLayer {
 public:
  explicit Plain(DiskFile& file) : file_(file) {}
  Status write(std::span<const Extent> extents, ByteView data) override { return file_.write(extents, data); }
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override { return file_.read(extents, into); }
  Result<Extent> append(std::span<const ByteView> pieces, bool) override {
    const uint64_t end = *file_.size();
    const Extent extent{end, pieces[0].size()};
    HF_TRY(file_.write({&extent, 1}, pieces[0]));
    return extent;
  }
  Result<uint64_t> size() override { return file_.size(); }
  Status sync() override { return file_.sync(); }
  Status set_size(uint64_t bytes) override { return file_.set_size(bytes); }
  Status close() override { return Status(); }

 private:
  DiskFile& file_;
};

struct Outcomes {
  std::vector<std::string> seen;  // of those who live
  Bytes content;
  int acts = 0, given = 0, claims = 0, changes = 0;
  size_t waiting_bytes = 0;
  size_t left_of_parts = 0;
  int written_to_parts = 0;
};

Outcomes run(int teams, uint64_t seed, Death death, bool forgets, Protocols protocols, uint64_t big = 0, int parts_fail_at = 0) {
  Disk disk(forgets);
  PartsDisk parts_disk(forgets);
  parts_disk.fails_at = parts_fail_at;
  Group group(teams, death, disk);
  group.at_loss = [&parts_disk](int team) { parts_disk.lose(team); };
  std::vector<std::string> seen(static_cast<size_t>(teams));
  std::vector<std::unique_ptr<FakeReplica>> replicas;
  for (int team = 0; team < teams; ++team) replicas.push_back(std::make_unique<FakeReplica>(group, team));
  std::vector<std::thread> threads;
  for (size_t team = 0; team < size_t(teams); ++team)
    threads.emplace_back([&, team] {
      try {
        auto parts = protocols.write == WriteProtocol::distributed_separate ? std::make_unique<FakeParts>(parts_disk, *replicas[team]) : nullptr;
        const auto file =
            coordinated(std::make_unique<DiskFile>(disk, *replicas[team]), *replicas[team], subject, "file", protocols, std::move(parts));
        seen[team] = run_program(*file, seed, big);
      } catch (const Died&) {
      }
    });
  for (std::thread& thread : threads) thread.join();
  Outcomes outcomes{{},           disk.content(),        group.acts(),      group.given(),       group.claims(),
                    disk.count(), group.waiting_bytes(), parts_disk.left(), parts_disk.written()};
  for (int team = 0; team < teams; ++team)
    if (group.lives(team)) outcomes.seen.push_back(seen[size_t(team)]);
  return outcomes;
}

Outcomes alone(uint64_t seed, uint64_t big = 0) {
  Disk disk(false);
  Group group(1, {}, disk);
  FakeReplica replica(group, 0);
  DiskFile file(disk, replica);
  Plain plain(file);
  Outcomes outcomes;
  outcomes.seen.push_back(run_program(plain, seed, big));
  outcomes.content = disk.content();
  outcomes.changes = disk.count();
  return outcomes;
}

struct Case {
  int teams;
  bool forgets;
  Protocols protocol;
};
const Protocols simple, distribute{ReadProtocol::read_and_distribute, WriteProtocol::simple};
class Coordinated : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, Coordinated,
                         testing::Values(Case{2, false, simple}, Case{2, true, simple}, Case{3, false, distribute}, Case{3, true, simple}),
                         [](const auto& info) {
                           return std::to_string(info.param.teams) + (info.param.forgets ? "_forget_" : "_keep_") +
                                  name_of(info.param.protocol.read)[0];
                         });

TEST_P(Coordinated, without_a_loss_all_see_what_one_alone_sees) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Outcomes native = alone(seed), both = run(GetParam().teams, seed, {}, GetParam().forgets, GetParam().protocol);
    ASSERT_EQ(both.content, native.content) << "seed " << seed;
    for (const std::string& seen : both.seen) ASSERT_EQ(seen, native.seen[0]) << "seed " << seed;
  }
}

TEST_P(Coordinated, a_leader_may_die_at_any_act) {
  int fired = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Outcomes native = alone(seed);
    const int acts = run(GetParam().teams, seed, {}, GetParam().forgets, GetParam().protocol).acts;
    for (int act = 1; act <= acts; ++act)
      for (const Death::When when : {Death::before, Death::within, Death::after}) {
        const Outcomes left = run(GetParam().teams, seed, {when, act}, GetParam().forgets, GetParam().protocol);
        ASSERT_EQ(int(left.seen.size()), GetParam().teams - 1);
        fired += 1;
        ASSERT_EQ(left.content, native.content) << "seed " << seed << ", act " << act << ", " << int(when);
        for (const std::string& seen : left.seen) ASSERT_EQ(seen, native.seen[0]) << "seed " << seed << ", act " << act << ", " << int(when);
      }
  }
  EXPECT_GT(fired, 300);
}

// Who dies at a piece may be a follower as well.
class Sharing : public testing::TestWithParam<std::tuple<int, ReadProtocol, WriteProtocol, bool>> {
 protected:
  static constexpr uint64_t big = 300000;
  // Little is kept, so that the replicas sync by themselves, too.
  Protocols protocols() const { return {std::get<1>(GetParam()), std::get<2>(GetParam()), nullptr, 5 * big / 2}; }
  int teams() const { return std::get<0>(GetParam()); }
  bool forgets() const { return std::get<3>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Protocols, Sharing,
                         testing::Combine(testing::Values(2, 3),
                                          testing::Values(ReadProtocol::simple, ReadProtocol::extended_simple, ReadProtocol::read_and_distribute,
                                                          ReadProtocol::chained, ReadProtocol::chunked_and_chained,
                                                          ReadProtocol::distributed_chunked),
                                          testing::Values(WriteProtocol::simple, WriteProtocol::distributed, WriteProtocol::distributed_separate),
                                          testing::Bool()),
                         [](const auto& info) {
                           std::string name = std::to_string(std::get<0>(info.param)) + "_" + name_of(std::get<1>(info.param)) + "_" +
                                              name_of(std::get<2>(info.param)) + (std::get<3>(info.param) ? "_forget" : "_keep");
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(Sharing, is_not_seen_by_the_program) {
  int given = 0, apart = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Outcomes native = alone(seed, big), all = run(teams(), seed, {}, forgets(), protocols(), big);
    ASSERT_EQ(all.content, native.content) << "seed " << seed;
    for (const std::string& seen : all.seen) ASSERT_EQ(seen, native.seen[0]) << "seed " << seed;
    ASSERT_EQ(all.waiting_bytes, 0u) << "of calls that are over";
    ASSERT_EQ(all.left_of_parts, 0u);
    apart += all.written_to_parts;
    given += all.given;
  }
  const ReadProtocol read = protocols().read;
  const bool gives = read >= ReadProtocol::read_and_distribute || (read == ReadProtocol::extended_simple && teams() > 2);
  EXPECT_EQ(given > 0, gives);
  EXPECT_EQ(apart > 20, protocols().write == WriteProtocol::distributed_separate);
}

TEST_P(Sharing, bears_a_death_at_any_act_piece_or_claim) {
  constexpr Death::When all[] = {Death::before,       Death::within,          Death::after,         Death::before_giving,
                                 Death::after_giving, Death::before_claiming, Death::after_claiming};
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const Outcomes native = alone(seed, big), whole = run(teams(), seed, {}, forgets(), protocols(), big);
    for (const Death::When when : all)
      for (int act = 1; act <= (when <= Death::after ? whole.acts : when <= Death::after_giving ? whole.given : whole.claims); ++act) {
        const std::string what = "seed " + std::to_string(seed) + ", act " + std::to_string(act) + ", " + std::to_string(when);
        const Outcomes left = run(teams(), seed, {when, act}, forgets(), protocols(), big);
        ASSERT_EQ(int(left.seen.size()), teams() - 1) << what;
        ASSERT_EQ(left.content, native.content) << what;
        ASSERT_EQ(left.left_of_parts, 0u) << what;
        for (const std::string& seen : left.seen) ASSERT_EQ(seen, native.seen[0]) << what;
      }
  }
}

// `auto`, where teams have nodes of their own: each way comes up, and a death at any moment is borne.
TEST(ByMeasure, is_not_seen_by_the_program) {
  constexpr uint64_t big = 300000;
  constexpr Death::When all[] = {Death::before,       Death::within,          Death::after,         Death::before_giving,
                                 Death::after_giving, Death::before_claiming, Death::after_claiming};
  const auto protocols = [](Paces& paces) {
    return Protocols{ReadProtocol::distributed_chunked, WriteProtocol::distributed, nullptr, 5 * big / 2, &paces, &paces};
  };
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    Paces learned;
    const Outcomes native = alone(seed, big), whole = run(3, seed, {}, true, protocols(learned), big);
    ASSERT_EQ(whole.content, native.content) << "seed " << seed;
    for (const Death::When when : all)
      for (int act = 1; act <= (when <= Death::after ? whole.acts : when <= Death::after_giving ? whole.given : whole.claims); ++act) {
        Paces paces;
        const std::string what = "seed " + std::to_string(seed) + ", act " + std::to_string(act) + ", " + std::to_string(when);
        const Outcomes left = run(3, seed, {when, act}, true, protocols(act % 2 ? paces : learned), big);
        ASSERT_EQ(left.content, native.content) << what;
        for (const std::string& seen : left.seen) ASSERT_EQ(seen, native.seen[0]) << what;
      }
  }
}

// A team that was started again, on another node than the leader that it followed: it hears of that one's loss before it comes to the file.
class AfterALog final : public ReplicaOfFiles {
 public:
  explicit AfterALog(std::vector<Outcome> log) : log_(std::move(log)) {}
  const redundant::Place& place() const override { return place_; }
  bool leads() override { return true; }
  Bytes meet(uint64_t, const redundant::Claim& claim, const std::function<std::string()>&, const Act& act) override {
    then_.reset();
    if (at_ == log_.size()) return act({});
    then_ = claim;
    if (view_then) then_->view = *view_then;
    return pack(log_[at_++]);
  }
  std::optional<redundant::Claim> claimed_then(uint64_t) override { return then_; }
  bool is_kept() override { return true; }
  [[noreturn]] void cannot_catch_up(const std::string& why) override { throw std::runtime_error(why); }
  std::optional<uint64_t> view_then;
  bool shares_node() const override { return false; }
  bool is_alone() override { return false; }
  uint32_t successions() override { return 1; }
  void leaves(bool, int) override {}

 private:
  const redundant::Place place_{2, 2, 0, 1};
  const std::vector<Outcome> log_;
  size_t at_ = 0;
  std::optional<redundant::Claim> then_;
};

TEST(AfterALog, what_the_lost_leader_has_not_synced_is_written_once_more) {
  Disk disk(false);
  Group group(1, {Death::never, 0}, disk);
  FakeReplica whose(group, 0);
  AfterALog replica({{.value = 4}, {.value = 4}});
  const auto file = coordinated(std::make_unique<DiskFile>(disk, whose), replica, subject, "file", {});
  const auto write = [&](uint64_t at, char byte) {
    const Extent extent{at, 4};
    EXPECT_TRUE(file->write({&extent, 1}, Bytes(4, std::byte(byte))).ok());
  };
  write(0, 'a');
  write(2, 'b');
  EXPECT_TRUE(disk.content().empty()) << "it stands in the log";
  write(6, 'c');
  const Bytes content = disk.content();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(content.data()), content.size()), "aabbbbcccc");
}

// The leader had read it for all, and sent it in pieces: the log has none of them, and the file has.
TEST(AfterALog, what_the_leader_had_read_for_all_is_read_once_more) {
  constexpr uint64_t big = 300000;
  for (const ReadProtocol protocol : {ReadProtocol::read_and_distribute, ReadProtocol::chained, ReadProtocol::chunked_and_chained}) {
    Disk disk(false);
    Group group(1, {Death::never, 0}, disk);
    FakeReplica whose(group, 0);
    DiskFile on_disk(disk, whose);
    const Extent all{0, big};
    const Bytes data(big, std::byte('r'));
    ASSERT_TRUE(on_disk.write({&all, 1}, data).ok());
    AfterALog replica(std::vector<Outcome>{{.value = big}});
    replica.view_then = coding::plain_checksum(data, big);
    const auto file = coordinated(std::make_unique<DiskFile>(disk, whose), replica, subject, "file", {protocol, WriteProtocol::simple});
    Bytes into(big);
    const auto got = file->read({&all, 1}, into);
    ASSERT_TRUE(got) << name_of(protocol);
    EXPECT_EQ(*got, big);
    EXPECT_EQ(into, data) << name_of(protocol);
  }
}

// The first of two that live, after many losses.
class Late final : public ReplicaOfFiles, public redundant::Sharing {
 public:
  static constexpr int number = 8, other = redundant::most_teams - 1;
  const redundant::Place& place() const override { return place_; }
  bool leads() override { return true; }
  Bytes meet(uint64_t, const redundant::Claim&, const std::function<std::string()>&, const Act& act) override { return act({.same_view = true}); }
  std::optional<redundant::Claim> claimed_then(uint64_t) override { return std::nullopt; }
  bool is_kept() override { return false; }
  [[noreturn]] void cannot_catch_up(const std::string& why) override { throw std::runtime_error(why); }
  bool shares_node() const override { return false; }
  bool is_alone() override { return false; }
  uint32_t successions() override { return 0; }
  void leaves(bool, int) override {}
  Living living() override { return {redundant::team_bit(number) | redundant::team_bit(other), 1}; }
  void give(int team, uint64_t, uint64_t, ByteView, ByteView) override { given_to |= redundant::team_bit(team); }
  std::optional<Bytes> take(uint64_t, uint64_t, uint32_t) override { return std::nullopt; }
  void note(const std::string&) override {}
  uint64_t given_to = 0;

 private:
  const redundant::Place place_{number, 2, 0, 1};
};

TEST(Teams, share_reads_whatever_their_numbers) {
  constexpr uint64_t big = 300000;
  Disk disk(false);
  Group group(1, {Death::never, 0}, disk);
  FakeReplica whose(group, 0);
  DiskFile on_disk(disk, whose);
  const Extent all{0, big};
  ASSERT_TRUE(on_disk.write({&all, 1}, Bytes(big, std::byte('r'))).ok());
  Late replica;
  const auto file =
      coordinated(std::make_unique<DiskFile>(disk, whose), replica, subject, "file", {ReadProtocol::read_and_distribute, WriteProtocol::simple});
  Bytes into(big);
  for (int times = 0; times < 2; ++times) {  // from the first one all know who takes part in the second
    const auto got = file->read({&all, 1}, into);
    ASSERT_TRUE(got);
    EXPECT_EQ(*got, big);
  }
  EXPECT_EQ(replica.given_to, redundant::team_bit(Late::other));
}

TEST(Separate, parts_that_cannot_be_written_do_without) {
  const Protocols separate{ReadProtocol::simple, WriteProtocol::distributed_separate};
  constexpr uint64_t big = 300000;
  int failed = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed)
    for (int fails_at = 1; fails_at <= run(3, seed, {}, false, separate, big).written_to_parts; ++fails_at) {
      const Outcomes native = alone(seed, big), all = run(3, seed, {}, fails_at % 2 == 0, separate, big, fails_at);
      ASSERT_EQ(all.content, native.content) << "seed " << seed << ", part " << fails_at;
      for (const std::string& seen : all.seen) ASSERT_EQ(seen, native.seen[0]) << "seed " << seed << ", part " << fails_at;
      ASSERT_EQ(all.left_of_parts, 0u);
      ++failed;
    }
  EXPECT_GT(failed, 20);
}

TEST(Outcomes, go_over_the_link_and_back) {
  const Outcome outcome{Status(Kind::no_space, "the disk is full", ENOSPC), 17, Bytes(3, std::byte(9))};
  const Outcome back = unpack(pack(outcome));
  EXPECT_EQ(back.status.kind(), Kind::no_space);
  EXPECT_EQ(back.status.sys_errno(), ENOSPC);
  EXPECT_EQ(back.status.sentence(), "the disk is full");
  EXPECT_EQ(back.value, 17u);
  EXPECT_EQ(back.payload, outcome.payload);
  EXPECT_FALSE(unpack(Bytes(5)).status.ok());
}

// The second of two leaders finds that the first had made the directory.
TEST(Once, a_call_that_was_made_already_is_a_success_for_the_next_leader) {
  for (const Death::When when : {Death::before, Death::after}) {
    Disk disk(false);
    Group group(2, {when, 1}, disk);
    FakeReplica first(group, 0), second(group, 1);
    bool there = false;
    const auto make = [&] { return there ? (errno = EEXIST, -1) : (there = true, 0); };
    std::thread dies([&] {
      try {
        (void)once(first, Call::make_directory, "/a", "", EEXIST, make);
      } catch (const Died&) {
      }
    });
    EXPECT_EQ(once(second, Call::make_directory, "/a", "", EEXIST, make), 0);
    dies.join();
    EXPECT_EQ(once(second, Call::make_directory, "/a", "", EEXIST, make), -1);
    EXPECT_EQ(errno, EEXIST);
  }
}

// What the first of two leaders could not do the second has not found done.
TEST(Once, a_call_that_failed_before_a_leader_was_lost_fails_again) {
  Disk disk(false);
  Group group(2, {Death::after, 1}, disk);
  FakeReplica first(group, 0), second(group, 1);
  const auto remove = [] { return errno = ENOENT, -1; };
  std::thread dies([&] {
    try {
      (void)once(first, Call::unlink, "/no such file", "", ENOENT, remove);
    } catch (const Died&) {
    }
  });
  EXPECT_EQ(once(second, Call::unlink, "/no such file", "", ENOENT, remove), -1);
  EXPECT_EQ(errno, ENOENT);
  dies.join();
}

}  // namespace
}  // namespace holdfast::file::test
