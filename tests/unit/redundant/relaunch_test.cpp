// A lost team comes back: it goes through the log of another one, joins it, and can lead after the next loss.
#include <gtest/gtest.h>

#include <filesystem>

#include "redundant/subjects.hpp"
#include "unit/redundant/fake_relaunch.hpp"

namespace holdfast::redundant::test {
namespace {

constexpr size_t steps = 30;

// What a team that resumes has seen before it joined is its own, and empty here.
std::vector<std::string> seen_by_both(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  std::vector<std::string> both;
  for (size_t i = 0; i < one.size(); ++i) both.push_back(i < other.size() && other[i].empty() ? "" : one[i]);
  return both;
}

// What all who live to the end have seen is the same. The teams that have joined.
uint64_t check(int teams, int relaunches, uint64_t seed, const std::vector<World::Death>& deaths, bool copies = false, bool resume = false,
               size_t length = steps, int* had = nullptr) {
  const std::vector<Step> program = some_program(seed, length);
  World world(teams, relaunches, seed, program, copies, resume);
  if (!world.run(deaths)) {
    ADD_FAILURE() << "hangs: seed " << seed << " of " << teams << " teams, first death at " << deaths[0].step;
    return 0;
  }
  EXPECT_FALSE(world.stopped) << "seed " << seed;
  if (world.job_is_lost) return 0;
  if (had) *had = world.teams();
  const Member* first = nullptr;
  for (int team = 0; team < world.teams(); ++team) {
    if (!world.lives(team)) continue;
    const Member& member = world.member(team);
    EXPECT_TRUE(member.is_sound()) << "seed " << seed << " team " << team << " first death at " << deaths[0].step;
    if (!member.ended()) continue;  // it still stands by
    if (first) {
      EXPECT_EQ(seen_by_both(first->seen(), member.seen()), seen_by_both(member.seen(), first->seen()))
          << "seed " << seed << " of " << teams << " teams";
    }
    first = &member;
  }
  if (first && !world.seen_alone.empty()) {
    if (first->seen().size() < world.seen_alone.size()) ADD_FAILURE() << "seed " << seed << ": what was seen by one that was alone is missing";
    if (testing::Test::HasFailure()) return 0;
    // The order is the program's, so what it had seen is a beginning of what the others have seen.
    const std::vector<std::string> begin(first->seen().begin(), first->seen().begin() + ptrdiff_t(world.seen_alone.size()));
    EXPECT_EQ(seen_by_both(begin, world.seen_alone), seen_by_both(world.seen_alone, begin))
        << "seed " << seed << ": what was seen by one that was alone does not hold";
  }
  return world.joined;
}

class Relaunch : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Teams, Relaunch, testing::Values(2, 3));

TEST_P(Relaunch, a_loss_at_any_step_brings_one_that_joins) {
  int joined = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed)
    for (uint64_t step = 0; step < 300; step += 7)
      for (uint64_t whom = 0; whom < uint64_t(GetParam()); ++whom) joined += check(GetParam(), 1, seed, {{step, whom}}) != 0;
  EXPECT_GT(joined, 100) << "most of them stand by to the end: the test says little";
}

// How often one joined, where all are lost in turn that were there when the job began.
int outlive_those_that_they_followed(int teams, unsigned random_seed, bool copies, bool resume = false) {
  std::mt19937_64 random(random_seed);
  int joined = 0;
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    std::vector<World::Death> deaths;
    uint64_t step = random() % 300;
    for (int i = 0; i < teams; ++i) {
      deaths.push_back({step, random(), true});
      step += 1 + random() % 250;
    }
    joined += check(teams, 1, seed, deaths, copies, resume) != 0;
    if (testing::Test::HasFailure()) break;
  }
  return joined;
}

void lose_any_again_and_again(int teams, unsigned random_seed, bool copies, bool resume = false) {
  std::mt19937_64 random(random_seed);
  for (uint64_t seed = 1; seed <= 4000 && !testing::Test::HasFailure(); ++seed) {
    std::vector<World::Death> deaths;
    uint64_t step = random() % 200;
    for (int i = 0; i < 5; ++i) {
      deaths.push_back({step, random()});
      step += 1 + random() % 150;
    }
    (void)check(teams, 4, seed, deaths, copies, resume);
  }
}

// In a job that is long enough for that. The most teams that one has had which came to its end.
int lose_one_after_the_other(int teams, unsigned random_seed, bool copies) {
  constexpr int losses = 15;
  std::mt19937_64 random(random_seed);
  int most = 0;
  for (uint64_t seed = 1; seed <= 150 && !testing::Test::HasFailure(); ++seed) {
    std::vector<World::Death> deaths;
    int had = 0;
    for (uint64_t i = 0, step = 0; i < losses; ++i) deaths.push_back({step += 1 + random() % 200, random()});
    (void)check(teams, losses, seed, deaths, copies, false, 5 * steps, &had);
    most = std::max(most, had);
  }
  return most;
}

TEST_P(Relaunch, the_one_that_came_back_outlives_those_that_it_followed) { EXPECT_GT(outlive_those_that_they_followed(GetParam(), 3, false), 200); }

TEST_P(Relaunch, any_may_be_lost_again_and_again) { lose_any_again_and_again(GetParam(), 5, false); }

TEST_P(Relaunch, any_may_be_lost_fifteen_times) {
  for (const bool copies : {false, true}) EXPECT_GT(lose_one_after_the_other(GetParam(), 29, copies), 10);
}

// On nodes of their own.
TEST_P(Relaunch, the_one_that_came_back_by_a_copy_outlives_those_that_it_followed) {
  EXPECT_GT(outlive_those_that_they_followed(GetParam(), 7, true), 100);
}

TEST_P(Relaunch, any_may_be_lost_again_and_again_on_nodes_of_their_own) { lose_any_again_and_again(GetParam(), 11, true); }

// From a checkpoint of its own: it joins in the middle.
TEST_P(Relaunch, the_one_that_resumed_outlives_those_that_it_followed) {
  EXPECT_GT(outlive_those_that_they_followed(GetParam(), 13, false, true), 200);
  EXPECT_GT(outlive_those_that_they_followed(GetParam(), 17, true, true), 100);
}

TEST_P(Relaunch, any_that_resumed_may_be_lost_again_and_again) {
  lose_any_again_and_again(GetParam(), 19, false, true);
  lose_any_again_and_again(GetParam(), 23, true, true);
}

// As a program that is started again with other words.
TEST_P(Relaunch, one_that_resumed_with_other_bytes_is_out_and_ends_no_job) {
  int out = 0;
  for (uint64_t seed = 1; seed <= 4000 && !testing::Test::HasFailure(); ++seed) {
    const std::vector<Step> program = some_program(seed, steps);
    World world(GetParam(), 1, seed, program, seed % 2 == 0, true);
    world.new_ones_differ = true;
    EXPECT_TRUE(world.run({{seed * 7919 % 300, 0}})) << "hangs: seed " << seed;
    EXPECT_FALSE(world.stopped || world.job_is_lost) << "seed " << seed;
    for (int team = 1; team < GetParam(); ++team) EXPECT_TRUE(world.lives(team) && world.member(team).is_sound()) << "seed " << seed;
    EXPECT_LE(world.not_noticed, 1) << "seed " << seed;
    const bool is_member = world.teams() > GetParam() && world.lives(GetParam()) && (world.joined & team_bit(GetParam()));
    EXPECT_FALSE(is_member && world.member(GetParam()).is_proven()) << "seed " << seed;
    out += world.out;
  }
  EXPECT_GT(out, 50) << "most of them are refused before they are members: the test says little";
}

// -------------------------------------------------------------------------------------------------------------------- alone

TEST(Meetings, a_call_that_stands_in_the_log_is_not_made_again) {
  Meetings back(2, team_bit(1), nullptr);
  Outbox out;
  back.learn(5, 1, {.call = 1, .at = 7}, bytes_of("then"));
  back.begin(5, {.call = 1, .at = 7}, out);
  EXPECT_EQ(back.state(5), Meetings::State::done);
  EXPECT_EQ(text_of(back.end(5)), "then");
  EXPECT_TRUE(out.empty()) << "it has no part in it";
  EXPECT_TRUE(back.claimed_then(5));
  back.begin(5, {.call = 1, .at = 8}, out);
  EXPECT_EQ(back.state(5), Meetings::State::wait) << "the one that it follows may still write it down";
}

TEST(Meetings, a_call_that_stands_otherwise_in_the_log_is_refused) {
  Meetings back(2, team_bit(1), nullptr);
  Outbox out;
  back.begin(5, {.call = 1, .sum = 77}, out);
  back.learn(5, 1, {.call = 1, .sum = 78}, bytes_of("then"));
  EXPECT_EQ(back.state(5), Meetings::State::contradicts);
}

// -------------------------------------------------------------------------------------------------------------------- what speaks for it

const Claim some_name{.call = 1}, some_bytes{.call = 2, .bytes = 8, .sum = 7};

TEST(Proof, is_the_same_bytes_in_the_log_and_not_the_same_name) {
  Meetings back(2, team_bit(1), nullptr);
  back.resumes(false);
  Outbox out;
  back.learn(5, 1, some_name, {});
  back.begin(5, some_name, out);
  (void)back.end(5);
  EXPECT_EQ(back.proof(), Claim::unproven);
  back.learn(5, 2, some_bytes, {});
  back.begin(5, some_bytes, out);
  EXPECT_EQ(back.state(5), Meetings::State::done);
  EXPECT_EQ(back.proof(), Claim::proven);
}

// A leader that goes on and one that has joined it.
struct Joined {
  MemoryLog log;
  Meetings leader{1, team_bit(1), &log}, back{2, team_bit(1), nullptr};
  Joined() { back.resumes(true); }
  void live() {
    Outbox none;
    leader.live(1, team_bit(1) | team_bit(2), none);
    back.live(1, team_bit(1) | team_bit(2), none);
  }
  static void bring(Outbox& out, Meetings& to, Outbox& answers) {
    for (const auto& [team, frame] : std::exchange(out, {})) to.take(frame, answers);
  }
};

TEST(Proof, is_what_the_leader_has_compared) {
  Joined two;
  two.live();
  Outbox out, answers;
  for (const Claim& claim : {some_name, some_bytes}) {
    EXPECT_EQ(two.back.proof(), Claim::unproven_may_begin_anew);
    two.leader.begin(5, claim, answers);
    two.back.begin(5, claim, out);
    Joined::bring(out, two.leader, answers);
    EXPECT_EQ(two.leader.claims(5).at(1).second.proof, Claim::unproven_may_begin_anew);
    ASSERT_EQ(two.leader.state(5), Meetings::State::act);
    two.leader.finish(5, {}, answers);
    Joined::bring(answers, two.back, out);
    ASSERT_EQ(two.back.state(5), Meetings::State::done);
    (void)two.leader.end(5), (void)two.back.end(5);
  }
  EXPECT_EQ(two.back.proof(), Claim::proven);
}

// The leader's call was under way when the other one joined.
TEST(Proof, is_looked_for_where_it_is_told_of_a_call_that_was_made_without_it) {
  for (const bool is_told_first : {false, true}) {
    for (const uint64_t sum : {some_bytes.sum, some_bytes.sum + 1}) {
      Joined two;
      Outbox out, answers;
      two.leader.begin(5, some_bytes, answers);
      ASSERT_EQ(two.leader.state(5), Meetings::State::act);
      Claim claim = some_bytes;
      claim.sum = sum;
      two.live();
      two.back.begin(5, claim, out);
      if (!is_told_first) Joined::bring(out, two.leader, answers);
      two.leader.finish(5, {}, answers);
      Joined::bring(answers, two.back, out);
      if (is_told_first) {
        EXPECT_EQ(two.back.state(5), Meetings::State::done);
        EXPECT_EQ(two.back.proof(), Claim::unproven_may_begin_anew) << "nobody has compared it";
        (void)two.back.end(5);
        Joined::bring(out, two.leader, answers);
        Joined::bring(answers, two.back, out);
        two.back.begin(5, claim, out);
      }
      const bool is_same = sum == some_bytes.sum;
      EXPECT_EQ(two.back.state(5) == Meetings::State::contradicts, !is_same);
      EXPECT_EQ(two.back.proof() == Claim::proven, is_same && !is_told_first);
    }
  }
}

TEST(Proof, is_that_it_has_led) {
  Meetings back(2, team_bit(1), nullptr);
  back.resumes(false);
  Outbox out;
  back.live(1, team_bit(2), out);
  back.begin(5, some_bytes, out);
  ASSERT_EQ(back.state(5), Meetings::State::act);
  back.finish(5, {}, out);
  EXPECT_EQ(back.proof(), Claim::proven);
}

// -------------------------------------------------------------------------------------------------------------------- where it joins

struct Written {
  MemoryLog log;
  void change(uint64_t subject, uint64_t number, const Claim& claim) { log.call(subject, number, claim, {}); }
  Join searched(Join join) const {
    for (size_t i = 0; i < log.entries.size(); ++i) {
      const MemoryLog::One& one = log.entries[i];
      join.add({one.kind, one.subject, one.number, 0, one.payload}, i);
    }
    join.has_all();
    return join;
  }
};

TEST(Joining, is_at_the_newest_change_that_is_the_same) {
  Written then;
  then.change(5, 1, {.call = 1, .at = 10, .sum = 3});
  then.change(5, 2, {.call = 1, .at = 20, .sum = 4});
  then.change(5, 3, {.call = 1, .at = 10, .sum = 3});
  then.change(5, 4, {.call = 1, .at = 10, .sum = 9});
  EXPECT_EQ(then.searched(Join(5, {.call = 1, .at = 10, .sum = 3}, {}, {})).place(), 2u);
  EXPECT_FALSE(then.searched(Join(6, {.call = 1, .at = 10, .sum = 3}, {}, {})).place()) << "another file";
}

TEST(Joining, is_at_the_first_one_since_what_it_goes_on_from_was_written) {
  Written then;
  for (uint64_t step = 1; step <= 3; ++step) {
    then.change(50, step, {.call = 2});      // the same name each time
    then.change(60 + step, 1, {.call = 3});  // the checkpoint of that step
  }
  EXPECT_EQ(then.searched(Join(50, {.call = 2}, {}, {62})).place(), 4u);
  EXPECT_EQ(then.searched(Join(50, {.call = 2}, {}, {})).place(), 4u);
  then.change(50, 4, {.call = 2});
  EXPECT_EQ(then.searched(Join(50, {.call = 2}, {}, {62})).place(), 4u);
  EXPECT_FALSE(then.searched(Join(61, {.call = 3}, {}, {62})).place());
}

// The others remove it when they have newer ones. That was taken for its being written: the team was refused, for it began at a change before that.
TEST(Joining, is_at_the_first_one_at_all_where_it_goes_on_from_what_the_job_began_with) {
  Written then;
  then.change(64, 1, {.call = 3});
  then.change(50, 1, {.call = 2});
  then.change(65, 1, {.call = 3});
  then.change(63, 1, {.call = 4});  // the removal of what was there before
  then.change(50, 2, {.call = 2});
  EXPECT_EQ(then.searched(Join(64, {.call = 3}, {}, {0})).place(), 0u);
  EXPECT_EQ(then.searched(Join(50, {.call = 2}, {}, {0})).place(), 1u);
  EXPECT_EQ(then.searched(Join(50, {.call = 2}, {}, {0, 65})).place(), 4u) << "a part of it is newer";
}

TEST(Joining, waits_for_the_next_change_and_that_has_to_be_it) {
  Written then;
  then.change(5, 1, {.call = 1, .at = 10});
  Join join = then.searched(Join(5, {.call = 1, .at = 20}, {}, {}));
  EXPECT_FALSE(join.place());
  EXPECT_FALSE(join.is_contradicted());
  Written next;
  next.change(5, 2, {.call = 4, .looks = 1});
  Join looked = next.searched(join);
  EXPECT_FALSE(looked.is_contradicted()) << "a look changes nothing";
  next.change(5, 3, {.call = 1, .at = 20, .sum = 1});
  EXPECT_TRUE(next.searched(join).is_contradicted()) << "its bytes are others";
}

TEST(Joining, is_at_what_a_lost_one_was_about_to_do) {
  Written then;
  then.change(5, 1, {.call = 1, .at = 10});
  then.log.intent(5, 2, {.call = 1, .at = 20});
  then.change(5, 2, {.call = 1, .at = 20});
  EXPECT_EQ(then.searched(Join(5, {.call = 1, .at = 20}, {}, {})).place(), 1u);
}

TEST(Joining, knows_a_file_by_which_of_its_opens_it_is) {
  Written then;
  for (uint64_t number = 1; number <= 3; ++number) {
    then.log.repeat({Entry::opened, 77, number, 0, {}});
    then.change(open_subject(77, number), 1, {.call = 1, .at = number * 10});
  }
  EXPECT_EQ(then.searched(Join(open_subject(77, 1), {.call = 1, .at = 30}, 77, {})).place(), 5u);
}

TEST(Joining, is_not_behind_receives_from_anybody) {
  Written then;
  then.change(5, 1, {.call = 1, .at = 10});
  then.log.decision(message_subject(Messages::matches, 3), 1, bytes_of("from 3"));
  then.change(5, 2, {.call = 1, .at = 20});
  EXPECT_TRUE(then.searched(Join(5, {.call = 1, .at = 20}, {}, {})).has_matches_before());
  EXPECT_FALSE(then.searched(Join(5, {.call = 1, .at = 10}, {}, {})).has_matches_before());
}

// A removal of then finds nothing to remove now.
TEST(Joining, changes_come_in_the_order_of_the_log_and_may_be_looks_now) {
  MemoryLog then, own;
  then.call(5, 1, {.call = 1}, {});
  then.call(6, 1, {.call = 2}, {});
  size_t at = 0;
  CatchUp past(
      [&]() -> std::optional<Entry> {
        if (at == then.entries.size()) return std::nullopt;
        const MemoryLog::One& one = then.entries[at++];
        return Entry{one.kind, one.subject, one.number, 0, one.payload};
      },
      own);
  Meetings meetings(2, team_bit(1), nullptr);
  Decisions decisions(2, team_bit(1), 1, nullptr);
  past.keep_order();
  while (past.take_one(meetings, decisions)) {
  }
  EXPECT_FALSE(past.is_in_order(6, 1, true)) << "the other one comes first";
  EXPECT_TRUE(past.is_in_order(7, 1, true)) << "a look is nowhere in that order";
  EXPECT_FALSE(past.is_in_order(7, 1, false)) << "nobody has changed that then";
  EXPECT_TRUE(past.is_in_order(5, 1, true));
  past.has_made(5, 1);
  EXPECT_TRUE(past.is_in_order(6, 1, false));
}

TEST(MessageDecisions, made_alone_are_not_waited_for_when_another_one_comes) {
  MemoryLog log;
  Decisions leader(1, first_teams(2), 0, &log);
  Outbox out;
  leader.live(1, team_bit(1), 1, out);
  (void)leader.decided_message(message_subject(Messages::matches), bytes_of("from 3"));
  (void)leader.decided_no(message_subject(Messages::requests));
  leader.live(2, team_bit(1) | team_bit(2), 1, out);
  leader.send_batch(out);
  for (const auto& [team, frame] : out) {
    Frame arrived;
    arrived.word = Word::arrived, arrived.team = uint16_t(team), arrived.epoch = 2, arrived.number = frame.number;
    Outbox none;
    leader.take(arrived, none);
  }
  EXPECT_TRUE(leader.has_arrived());
}

TEST(MessageDecisions, made_alone_and_nothing_since_are_not_waited_for) {
  MemoryLog log;
  Decisions leader(1, first_teams(2), 0, &log);
  Outbox out;
  leader.live(1, team_bit(1), 1, out);
  (void)leader.decided_message(message_subject(Messages::matches), bytes_of("from 3"));
  leader.live(2, team_bit(1) | team_bit(2), 1, out);
  leader.send_batch(out);
  EXPECT_TRUE(out.empty());
  EXPECT_TRUE(leader.has_arrived());
}

TEST(Meetings, what_a_lost_one_was_about_to_do_is_known) {
  Meetings back(2, team_bit(1), nullptr);
  Outbox out;
  back.learn_intent(5, 1, {.call = 1, .view = 3});
  back.live(1, 0, out);
  back.begin(5, {.call = 1}, out);
  ASSERT_EQ(back.state(5), Meetings::State::act);
  ASSERT_TRUE(back.intended(5));
  EXPECT_EQ(back.intended(5)->view, 3u);
  back.finish(5, {}, out);
  (void)back.end(5);
  back.begin(5, {.call = 1}, out);
  EXPECT_FALSE(back.intended(5)) << "of the next one nobody was about to make anything";
}

// -------------------------------------------------------------------------------------------------------------------- the file

class Logs : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / ("holdfast-log-" + std::to_string(::getpid()));
    std::filesystem::create_directory(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path() const { return log_path(directory_.string(), 1, 0); }
  std::filesystem::path directory_;
};

TEST_F(Logs, what_is_written_can_be_read_at_once) {
  LogFile writer(1 << 20), reader(1 << 20);
  ASSERT_TRUE(writer.make(path()).ok());
  ASSERT_TRUE(reader.set_aside().ok());
  EXPECT_TRUE(reader.at_end());
  ASSERT_TRUE(reader.open(path()).ok());
  EXPECT_FALSE(reader.next());
  LogKeeper keeper(writer);
  keeper.decision(7, 1, bytes_of("abc"));
  keeper.call(5, 1, {.call = 3, .sum = 9}, bytes_of("made"));
  const auto first = reader.next(), second = reader.next();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(text_of(first->payload), "abc");
  const auto call = claim_in(second->payload);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->claim.sum, 9u);
  EXPECT_EQ(text_of(call->rest), "made");
  EXPECT_TRUE(reader.at_end());
}

// The outcome comes to the new team before it has come to the call, and is of no use there.
TEST_F(Logs, who_joins_while_the_leader_acts_is_told_when_it_comes_to_that_call) {
  LogFile writer(1 << 20);
  ASSERT_TRUE(writer.make(path()).ok());
  LogKeeper keeper(writer);
  Meetings leader(0, 0b1, &keeper), joiner(2, 0b1, &keeper);
  const Claim claim{.call = 3, .sum = 9};
  Outbox out;
  leader.begin(5, claim, out);
  ASSERT_EQ(leader.state(5), Meetings::State::act);
  leader.live(1, 0b101, out);
  joiner.live(1, 0b101, out);
  out.clear();
  leader.finish(5, bytes_of("made"), out);
  for (const auto& [team, frame] : std::exchange(out, {})) joiner.take(frame, out);
  ASSERT_TRUE(out.empty());
  joiner.begin(5, claim, out);
  ASSERT_EQ(out.size(), 1u);
  Frame said = out[0].second;
  said.team = 2;
  out.clear();
  leader.take(said, out);
  ASSERT_EQ(out.size(), 1u) << "it would wait for ever";
  joiner.take(out[0].second, out);
  EXPECT_EQ(joiner.state(5), Meetings::State::done);
}

// As it comes over a connection: in pieces that know nothing of entries.
TEST_F(Logs, a_copy_has_an_entry_when_it_is_whole) {
  for (const uint64_t piece : {1, 7, 50, 1000}) {
    LogFile writer(1 << 20), copy(1 << 20);
    ASSERT_TRUE(writer.make_unnamed(path().substr(0, path().rfind('/'))).ok());
    ASSERT_TRUE(copy.set_aside().ok());
    ASSERT_TRUE(copy.make_unnamed(path().substr(0, path().rfind('/'))).ok());
    LogKeeper keeper(writer);
    uint64_t sent = LogFile::beginning, seen = 0;
    for (uint64_t i = 1; i <= 50; ++i) {
      keeper.decision(7, i, Bytes(i % 20, std::byte(i)));
      while (sent < writer.end()) {
        const ByteView next = writer.since(sent, piece);
        sent += next.size();
        ASSERT_TRUE(copy.copy(next));
        while (const auto entry = copy.next()) {
          EXPECT_EQ(entry->number, ++seen);
          EXPECT_EQ(Bytes(entry->payload.begin(), entry->payload.end()), Bytes(seen % 20, std::byte(seen)));
        }
      }
      EXPECT_EQ(seen, i);
      EXPECT_EQ(copy.copied(), sent);
    }
  }
}

TEST_F(Logs, a_copy_without_room_is_cut) {
  LogFile copy(4096);
  ASSERT_TRUE(copy.set_aside().ok());
  ASSERT_TRUE(copy.make_unnamed(path().substr(0, path().rfind('/'))).ok());
  EXPECT_TRUE(copy.copy(Bytes(4000)));
  EXPECT_FALSE(copy.copy(Bytes(100)));
  EXPECT_TRUE(copy.is_cut());
  EXPECT_FALSE(copy.copy(Bytes(1)));
  LogFile none(4096);
  ASSERT_TRUE(none.set_aside().ok());
  EXPECT_FALSE(none.make_unnamed(path() + "/there is none").ok());
  EXPECT_FALSE(none.copy(Bytes(1))) << "and is no signal";
  none.set_cut();
  EXPECT_FALSE(none.has_room());
}

TEST_F(Logs, what_has_no_room_ends_it_and_is_no_signal) {
  LogFile writer(4096), reader(4096);
  ASSERT_TRUE(writer.make(path()).ok());
  ASSERT_TRUE(reader.set_aside().ok());
  ASSERT_TRUE(reader.open(path()).ok());
  LogKeeper keeper(writer);
  for (uint64_t i = 1; i <= 100; ++i) keeper.decision(7, i, Bytes(100));
  EXPECT_TRUE(writer.is_cut());
  EXPECT_TRUE(reader.is_cut());
  uint64_t count = 0;
  while (const auto entry = reader.next()) EXPECT_EQ(entry->number, ++count);
  EXPECT_GT(count, 10u);
  EXPECT_LT(count, 40u);
}

}  // namespace
}  // namespace holdfast::redundant::test
