// What programs that replicas have started append to files: once, whoever is ahead, and whoever is lost in the middle.
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "redundant/map.hpp"
#include "redundant/membership/child_appends.hpp"

namespace holdfast::redundant {
namespace {

using Answers = ChildAppends::Answers;

struct Hub {
  explicit Hub(int teams) : living(first_teams(teams)) {}
  uint64_t living;
  ChildAppends appends{[this](int team) { return !(living & team_bit(team)); }, [this] { return living; }};
};

ChildAppend call(int team, uint64_t process, uint64_t length, uint64_t sum = 0) {
  return {.team = team, .process = process, .path = "/log", .program = "expr", .length = length, .sum = sum};
}

AppendAnswer only(const Answers& answers) {
  EXPECT_EQ(answers.size(), 1u);
  return answers.empty() ? AppendAnswer{} : answers[0];
}

TEST(ChildAppends, are_made_by_the_team_that_leads_and_done_for_others) {
  Hub hub(2);
  EXPECT_TRUE(hub.appends.asks(call(1, 11, 5), 0).empty()) << "it waits";
  EXPECT_EQ(only(hub.appends.asks(call(0, 10, 5), 10)).what, AppendAnswer::write);
  const Answers done = hub.appends.wrote(10, 105, 5, 20);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[1].process, 11u);
  EXPECT_EQ(done[1].what, AppendAnswer::is_done);
  EXPECT_EQ(done[1].value, 105);
}

TEST(ChildAppends, are_made_when_all_teams_have_come_there) {
  Hub hub(3);
  EXPECT_TRUE(hub.appends.asks(call(0, 10, 5), 0).empty());
  EXPECT_TRUE(hub.appends.asks(call(2, 12, 3), 0).empty()) << "in other pieces";
  EXPECT_EQ(only(hub.appends.asks(call(1, 11, 5), 0)).process, 10u);
}

TEST(ChildAppends, wait_for_others_not_for_ever) {
  Hub hub(2);
  EXPECT_TRUE(hub.appends.asks(call(1, 11, 5), 0).empty());
  EXPECT_TRUE(hub.appends.look(4900).empty());
  EXPECT_EQ(only(hub.appends.look(5000)).what, AppendAnswer::write);
  EXPECT_TRUE(hub.appends.asks(call(0, 10, 7), 5001).empty()) << "it waits until that is made";
  EXPECT_EQ(hub.appends.wrote(11, 5, 5, 5002).size(), 1u) << "the other one waits for the next one, too";
  const AppendAnswer then = only(hub.appends.asks(call(1, 11, 5), 5003));
  EXPECT_EQ(then.process, 10u);
  EXPECT_EQ(then.skip, 5u);
}

TEST(ChildAppends, that_no_other_team_makes_are_waited_with_once) {
  Hub hub(2);
  (void)hub.appends.asks(call(1, 11, 5), 0);
  (void)hub.appends.look(5000);
  (void)hub.appends.wrote(11, 5, 5, 5001);
  EXPECT_EQ(only(hub.appends.asks(call(1, 11, 5), 5002)).what, AppendAnswer::write);
}

TEST(ChildAppends, that_fail_fail_in_all_teams) {
  Hub hub(2);
  (void)hub.appends.asks(call(0, 10, 5), 0);
  (void)hub.appends.asks(call(1, 11, 5), 0);
  const Answers failed = hub.appends.wrote(10, 0, -ENOSPC, 1);
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_EQ(failed[1].value, -ENOSPC);
}

TEST(ChildAppends, of_a_lost_team_are_made_no_more) {
  Hub hub(2);
  (void)hub.appends.asks(call(1, 11, 5), 0);
  EXPECT_EQ(only(hub.appends.asks(call(0, 10, 5), 0)).what, AppendAnswer::write);
  hub.living = team_bit(1);
  EXPECT_EQ(only(hub.appends.asks(call(0, 12, 5), 1)).what, AppendAnswer::is_lost);
  const AppendAnswer next = only(hub.appends.look(2));
  EXPECT_EQ(next.process, 11u);
  EXPECT_EQ(next.torn, 5u) << "the lost one may have made it";
  EXPECT_EQ(only(hub.appends.wrote(10, 5, 5, 3)).what, AppendAnswer::is_lost);
}

TEST(ChildAppends, that_differ_are_told_of_when_all_have_ended) {
  Hub hub(2);
  (void)hub.appends.asks(call(0, 10, 5, 77), 0);
  (void)hub.appends.asks(call(1, 11, 5, 78), 1);
  (void)hub.appends.wrote(10, 5, 5, 2);
  (void)hub.appends.gone(10, 3);
  EXPECT_EQ(hub.appends.streams(), 1u) << "the other team goes on";
  (void)hub.appends.gone(11, 4);
  EXPECT_EQ(hub.appends.differences().size(), 1u);
  EXPECT_EQ(hub.appends.streams(), 0u);
}

// Teams that run the same processes one after the other. Some are lost in the middle of what they write.
class Job {
 public:
  Job(unsigned seed, int teams) : random_(seed), hub_(teams), teams_(size_t(teams)) {
    for (unsigned i = 0; i < processes; ++i) {
      Bytes bytes(1 + random_() % 40);
      for (std::byte& byte : bytes) byte = std::byte(random_());
      said_.push_back(std::move(bytes));
    }
  }

  void run() {
    while (!is_over()) {
      now_ms_ += int64_t(random_() % 120);
      take(hub_.appends.look(now_ms_));
      const int team = int(random_() % teams_.size());
      if (!(hub_.living & team_bit(team))) continue;
      if (std::popcount(hub_.living) > 1 && random_() % 90 == 0) lose(team);
      else if (random_() % (1 + unsigned(team)) == 0) step(team);
    }
    Bytes expected;
    for (const Bytes& bytes : said_) expected.insert(expected.end(), bytes.begin(), bytes.end());
    EXPECT_EQ(file_, expected);
    EXPECT_TRUE(hub_.appends.differences().empty());
  }

 private:
  static constexpr unsigned processes = 12;
  struct Team {
    unsigned process = 0;
    size_t done = 0, asked = 0;
    std::optional<AppendAnswer> told;
  };
  bool is_over() const {
    for (size_t team = 0; team < teams_.size(); ++team)
      if ((hub_.living & team_bit(int(team))) && teams_[team].process < processes) return false;
    return true;
  }
  uint64_t id(int team) const { return uint64_t(team) * 1000 + teams_[size_t(team)].process; }
  void take(const Answers& answers) {
    for (const AppendAnswer& answer : answers) {
      Team& team = teams_[answer.process / 1000];
      if (answer.what == AppendAnswer::write) team.told = answer;
      else if (answer.what == AppendAnswer::is_done) team.done += std::exchange(team.asked, 0);
    }
  }
  struct Made {
    uint64_t bytes = 0, place = 0;
  };
  // Some of it where it is lost in between.
  Made write(int which, bool all) {
    Team& team = teams_[size_t(which)];
    const ByteView bytes = ByteView(said_[team.process]).subspan(team.done, team.asked).subspan(size_t(team.told->skip));
    const ByteView behind = ByteView(file_).subspan(std::min<size_t>(file_.size(), team.told->at));
    const uint64_t there = team.told->torn > 0 ? there_of_torn(behind, bytes, team.told->torn) : 0;
    const ByteView rest = bytes.subspan(size_t(there));
    const size_t put = all ? rest.size() : random_() % (rest.size() + 1);
    file_.insert(file_.end(), rest.begin(), rest.begin() + ptrdiff_t(put));
    return {bytes.size(), there == bytes.size() ? team.told->at + there : file_.size()};
  }
  void step(int which) {
    Team& team = teams_[size_t(which)];
    if (team.process == processes) return;
    if (team.told) {
      const Made made = write(which, true);
      const uint64_t skip = team.told->skip;
      team.told.reset();
      EXPECT_EQ(skip + made.bytes, team.asked);
      take(hub_.appends.wrote(id(which), made.place, int64_t(made.bytes), now_ms_));
    } else if (team.asked == 0 && team.done == said_[team.process].size()) {
      take(hub_.appends.gone(id(which), now_ms_));
      ++team.process, team.done = 0;
    } else if (team.asked == 0) {
      team.asked = 1 + random_() % (said_[team.process].size() - team.done);
      ChildAppend append = call(which, id(which), team.asked, team.done + team.asked);
      append.end = file_.size();
      take(hub_.appends.asks(append, now_ms_));
    }
  }
  void lose(int which) {
    if (teams_[size_t(which)].told && random_() % 3 > 0) (void)write(which, random_() % 2);
    hub_.living &= ~team_bit(which);
    take(hub_.appends.look(now_ms_));
  }

  std::mt19937 random_;
  Hub hub_;
  std::vector<Team> teams_;
  std::vector<Bytes> said_;  // by process
  Bytes file_;
  int64_t now_ms_ = 0;
};

TEST(ChildAppends, are_there_once_whoever_is_lost) {
  for (unsigned seed = 1; seed <= 3000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Job(seed, 2 + int(seed % 2)).run();
  }
}

}  // namespace
}  // namespace holdfast::redundant
