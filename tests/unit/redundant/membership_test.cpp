// Who is declared lost, and what the job ends with.
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "redundant/membership/awaiting.hpp"
#include "redundant/membership/membership.hpp"
#include "redundant/membership/outlet.hpp"
#include "redundant/membership/output.hpp"
#include "redundant/membership/shared_pointers.hpp"
#include "redundant/orders.hpp"

namespace holdfast::redundant {
namespace {

std::vector<Order::What> kinds(const Orders& orders) {
  std::vector<Order::What> all;
  for (const Order& order : orders) all.push_back(order.what);
  return all;
}

std::string lines(const Orders& orders) {
  std::string all;
  for (const Order& order : orders)
    if (order.what == Order::say) all += order.line + "\n";
  return all;
}

int end_of(const Orders& orders) {
  for (const Order& order : orders)
    if (order.what == Order::finish) return order.code;
  return -1;
}

// Two teams of two ranks that have met.
Membership two_teams() {
  Membership members(2);
  for (int team = 0; team < 2; ++team)
    for (int rank = 0; rank < 2; ++rank) (void)members.joined(team, rank, 2);
  return members;
}

TEST(Membership, twins_are_introduced_when_all_have_come) {
  Membership members(2);
  EXPECT_TRUE(members.joined(0, 1, 2).empty());
  const Orders orders = members.joined(1, 1, 2);
  ASSERT_EQ(kinds(orders), std::vector{Order::introduce});
  EXPECT_EQ(orders[0].rank, 1);
}

TEST(Membership, a_process_that_goes_without_a_word_takes_its_team_along) {
  Membership members = two_teams();
  const Orders orders = members.gone(0, 1, "process 12 on a");
  EXPECT_EQ(kinds(orders), (std::vector{Order::kill, Order::say, Order::live}));
  EXPECT_EQ(orders[0].team, 0);
  EXPECT_EQ(lines(orders), "rank 1 of team 0 (process 12 on a) has died; team 1 goes on alone, and nothing is compared any more\n");
  EXPECT_EQ(members.living(0), 2u);
  EXPECT_TRUE(members.gone(0, 0, "process 11 on a").empty());
}

TEST(Membership, the_job_ends_with_what_the_team_that_is_left_ends_with) {
  Membership members = two_teams();
  (void)members.gone(0, 1, "");
  (void)members.leaves(1, 0, false);
  (void)members.leaves(1, 1, false);
  EXPECT_EQ(end_of(members.launcher_ended(0, 137)), -1);
  EXPECT_EQ(end_of(members.launcher_ended(1, 3)), 3);
}

TEST(Membership, a_signal_is_for_one_team_when_the_others_have_ended) {
  constexpr int code = 143;
  Membership members = two_teams();
  const Orders orders = members.signalled(code, "it has come");
  EXPECT_EQ(kinds(orders), (std::vector{Order::kill, Order::live, Order::say, Order::is_alone}));
  EXPECT_EQ(orders[0].team, 1);
  EXPECT_EQ(orders.back().team, 0);
  EXPECT_EQ(lines(orders), "it has come; team 0 goes on alone, and nothing is compared any more\n");
  EXPECT_TRUE(members.signalled(code, "").empty());
  EXPECT_EQ(end_of(members.launcher_ended(0, 7)), 7);
}

TEST(Membership, a_launcher_that_ends_well_where_a_signal_has_ended_its_ranks_does_not_count) {
  constexpr int code = 143;
  for (const bool end_by_themselves : {false, true}) {
    Membership members = two_teams();
    (void)members.signalled(code, "");
    (void)members.leaves(0, 0, false);
    if (end_by_themselves) (void)members.leaves(0, 1, false);
    EXPECT_EQ(end_of(members.launcher_ended(0, 0)), 0);
    EXPECT_EQ(members.code_in_the_end(0), end_by_themselves ? 0 : code);
    EXPECT_EQ(members.code_in_the_end(7), 7);
  }
}

TEST(Membership, a_child_that_starts_ranks_stops_the_job_before_they_are_there) {
  Membership members = two_teams();
  const Orders orders = members.starts_ranks(1, "a launcher");
  EXPECT_EQ(kinds(orders), (std::vector{Order::say, Order::kill, Order::kill, Order::finish}));
  EXPECT_EQ(lines(orders), "a launcher\n");
  EXPECT_EQ(end_of(orders), 2);
  EXPECT_TRUE(members.starts_ranks(0, "its twin's").empty());
}

TEST(Membership, a_child_that_writes_is_told_of_once) {
  Membership members = two_teams();
  (void)members.gone(0, 1, "");
  EXPECT_TRUE(members.told_of_child(0, "of a lost team").empty());
  EXPECT_EQ(lines(members.told_of_child(1, "one")), "one\n");
  EXPECT_TRUE(members.told_of_child(1, "another").empty());
  EXPECT_EQ(lines(members.told_of_child(1, "unseen", true)), "unseen\n");
  EXPECT_TRUE(members.told_of_child(1, "unseen, too", true).empty());
}

// MPICH's ends the other ranks, and may tell how these ended.
TEST(Membership, a_launcher_that_kills_ranks_for_the_error_of_one_does_not_hide_that) {
  constexpr int killed = 9, error = 3;
  for (const int code : {killed, 128 + killed, error, error | 4}) {
    Membership members = two_teams();
    for (int team = 0; team < 2; ++team) (void)members.leaves(team, 1, true, 0, error);
    EXPECT_EQ(end_of(members.launcher_ended(0, code)), -1);
    const Orders orders = members.launcher_ended(1, error);
    const bool hides = code == killed || code == 128 + killed;
    EXPECT_EQ(end_of(orders), hides ? error : code);
    EXPECT_EQ(lines(orders),
              hides ? fmt::format("the launcher of team 0 has ended with {}, as the ranks that it killed; rank 1 had ended with 3, which counts\n",
                                  code)
                    : "");
  }
}

TEST(Membership, a_launcher_says_the_code_of_an_abort) {
  constexpr int code = 9;
  Membership members = two_teams();
  for (int team = 0; team < 2; ++team) (void)members.leaves(team, 1, true);
  (void)members.launcher_ended(0, code);
  EXPECT_EQ(end_of(members.launcher_ended(1, code)), code);
}

// Its node is lost in that moment.
TEST(Membership, a_launcher_that_fails_once_all_ranks_have_ended_does_not_fail_the_job) {
  Membership members = two_teams();
  for (int team = 0; team < 2; ++team)
    for (int rank = 0; rank < 2; ++rank) (void)members.leaves(team, rank, false);
  EXPECT_EQ(end_of(members.launcher_ended(0, 9)), -1);
  const Orders orders = members.launcher_ended(1, 0);
  EXPECT_EQ(end_of(orders), 0);
  EXPECT_EQ(lines(orders), "all ranks of team 0 have ended, and its launcher with 9; that of team 1 ended with 0, which counts\n");
}

// An MPI library ends one rank for a peer that it does not reach, in one team.
TEST(Membership, a_team_that_one_of_its_ranks_has_ended_alone_does_not_fail_the_job) {
  constexpr int code = 139;
  for (const int aborts : {0, 1}) {
    Membership members = two_teams();
    (void)members.leaves(aborts, 1, true, 0, 15);
    EXPECT_EQ(end_of(members.launcher_ended(aborts, code)), -1);
    for (int rank = 0; rank < 2; ++rank) (void)members.leaves(1 - aborts, rank, false);
    const Orders orders = members.launcher_ended(1 - aborts, 0);
    EXPECT_EQ(end_of(orders), 0);
    EXPECT_EQ(lines(orders), fmt::format("a rank of team {} has ended it with {}; team {} ended with 0, which counts\n", aborts, code, 1 - aborts));
  }
}

// MPICH's may end with 0 then.
TEST(Membership, the_0_of_a_team_that_was_ended_does_not_count) {
  Membership members = two_teams();
  for (int team = 0; team < 2; ++team) (void)members.leaves(team, 1, true);
  (void)members.launcher_ended(1, 0);
  EXPECT_EQ(end_of(members.launcher_ended(0, 3)), 3);
}

// Open MPI's ranks end with an error then, as if the program had called MPI_Abort.
TEST(Membership, a_launcher_that_is_killed_takes_its_team_along_and_not_the_job) {
  constexpr int killed = 9, status = 137;
  for (const bool ranks_first : {false, true}) {
    Membership members = two_teams();
    if (ranks_first) (void)members.leaves(0, 1, true);
    const std::string line = lines(members.launcher_ended(0, status, killed));
    EXPECT_EQ(line, "the launcher of team 0 has died by signal 9; team 1 goes on alone, and nothing is compared any more\n");
    EXPECT_EQ(members.lost_teams(), 1);
    if (!ranks_first) EXPECT_TRUE(lines(members.leaves(0, 1, true)).empty());
    for (int rank = 0; rank < 2; ++rank) (void)members.leaves(1, rank, false);
    EXPECT_EQ(end_of(members.launcher_ended(1, 0)), 0);
  }
}

TEST(Membership, a_team_whose_launcher_is_killed_is_started_again) {
  Membership members(2, 1);
  for (int team = 0; team < 2; ++team) (void)members.joined(team, 0, 1);
  (void)members.leaves(0, 0, true);
  const auto orders = kinds(members.launcher_ended(0, 137, 9));
  EXPECT_NE(std::find(orders.begin(), orders.end(), Order::start), orders.end());
}

TEST(Membership, a_launcher_that_is_killed_once_all_its_ranks_have_ended_is_no_loss) {
  Membership members = two_teams();
  for (int team = 0; team < 2; ++team)
    for (int rank = 0; rank < 2; ++rank) (void)members.leaves(team, rank, false);
  (void)members.launcher_ended(0, 137, 9);
  EXPECT_EQ(members.lost_teams(), 0);
  EXPECT_EQ(end_of(members.launcher_ended(1, 0)), 0);
}

TEST(Membership, a_launcher_may_be_noticed_before_its_ranks) {
  Membership members = two_teams();
  (void)members.leaves(0, 0, false);
  (void)members.leaves(0, 1, false);
  (void)members.launcher_ended(0, 0);
  EXPECT_EQ(end_of(members.launcher_ended(1, 0)), -1);  // its ranks have not said yet how they ended
  (void)members.leaves(1, 0, false);
  EXPECT_EQ(end_of(members.leaves(1, 1, false)), 0);
}

TEST(Membership, one_rank_dead_at_the_same_place_in_every_team_is_said_to_be_the_programs_fault) {
  Membership members = two_teams();
  (void)members.gone(0, 1, "");
  EXPECT_EQ(end_of(members.gone(1, 1, "")), all_lost);
  EXPECT_EQ(members.fault_of_the_program(), "") << "nobody knows where they were";
  EXPECT_TRUE(members.lacks_a_place());
  members.died_at(0, 1, {.calls = 7, .asked = 2});
  members.died_at(1, 1, {.calls = 7, .asked = 2});
  EXPECT_EQ(
      members.fault_of_the_program(),
      "rank 1 has died at the same place in every team (after 7 calls on files and 2 questions about clocks and files), which looks like a fault "
      "of the program itself");
}

TEST(Membership, one_rank_dead_at_two_places_is_chance) {
  for (const HowFar other : {HowFar{.calls = 8, .asked = 2}, HowFar{.calls = 7, .asked = 3}}) {
    Membership members = two_teams();
    (void)members.gone(0, 1, "");
    members.died_at(0, 1, {.calls = 7, .asked = 2});
    members.died_at(1, 1, other);
    (void)members.gone(1, 1, "");
    EXPECT_EQ(members.fault_of_the_program(), "");
  }
}

TEST(Membership, two_ranks_dead_at_one_place_are_chance) {
  Membership members = two_teams();
  (void)members.gone(0, 1, "");
  (void)members.gone(1, 0, "");
  members.died_at(0, 1, {.calls = 7});
  members.died_at(1, 0, {.calls = 7});
  EXPECT_EQ(members.fault_of_the_program(), "");
}

TEST(Membership, an_abort_is_no_loss) {
  Membership members = two_teams();
  for (int team = 0; team < 2; ++team) {
    EXPECT_EQ(lines(members.leaves(team, 0, true)), "");
    EXPECT_EQ(lines(members.gone(team, 1, "")), "");
  }
  (void)members.launcher_ended(0, 9);
  EXPECT_EQ(end_of(members.launcher_ended(1, 9)), 9);
}

TEST(Membership, two_that_differ_stop_the_job) {
  Membership members = two_teams();
  const Orders orders = members.differ(1, "out, a write of 8 bytes at 0", {{0, {.sum = 1}}, {1, {.sum = 2}}});
  EXPECT_EQ(kinds(orders), (std::vector{Order::say, Order::kill, Order::kill, Order::finish}));
  EXPECT_EQ(end_of(orders), replicas_differ);
  EXPECT_NE(lines(orders).find("rank 1 differ: out, a write of 8 bytes at 0"), std::string::npos);
}

TEST(Membership, a_replica_that_runs_something_else_stops_the_job) {
  Membership members(2);
  (void)members.joined(0, 0, 1);
  const Orders orders = members.is_unlike(1, 0, "runs another program than team 0: b, and a there");
  EXPECT_EQ(kinds(orders), (std::vector{Order::say, Order::kill, Order::kill, Order::finish}));
  EXPECT_EQ(orders[0].line, "rank 0 of team 1 runs another program than team 0: b, and a there; the job stops before anything is written");
  EXPECT_EQ(orders.back().code, replicas_differ);
}

TEST(Membership, a_replica_that_alone_cannot_go_on_takes_its_team_along) {
  Membership members = two_teams();
  const Orders orders = members.refused(1, 1, "in.dat: another replica has opened it, and this one cannot");
  EXPECT_EQ(kinds(orders), (std::vector{Order::kill, Order::say, Order::live}));
  EXPECT_TRUE(orders[1].line.starts_with("rank 1 of team 1 cannot go on: in.dat: another")) << orders[1].line;
}

TEST(Membership, a_rehearsal_goes_on_with_the_first_and_counts) {
  Membership members(2, 0, true);
  for (const int team : {0, 1}) (void)members.joined(team, 0, 1);
  const Orders orders = members.differ(0, "out, a write of 8 bytes at 0", {{0, {.sum = 1}}, {1, {.sum = 2}}});
  EXPECT_EQ(end_of(orders), -1);
  EXPECT_NE(lines(orders).find("rank 0 differ: out, a write of 8 bytes at 0; the rehearsal goes on with what team 0 does"), std::string::npos);
  EXPECT_FALSE(members.is_lost(1));
  const std::vector<std::pair<int, Claim>> messages{{0, {.sent = 3, .sent_sum = 1}}, {1, {.sent = 3, .sent_sum = 2}}};
  for (int i = 0; i < 3; ++i) (void)members.differ(0, "message 2", messages);
  EXPECT_EQ(members.differences(), 2u) << "sums stay different";
  const Orders other = members.differ(0, "out, a write of 9 bytes at 0", {{0, {.bytes = 8}}, {1, {.bytes = 9}}});
  EXPECT_TRUE(members.is_lost(1));
  EXPECT_NE(lines(other).find("rank 0 of team 1 makes another call than team 0"), std::string::npos);
  (void)members.leaves(0, 0, false);
  EXPECT_NE(lines(members.launcher_ended(0, 7)).find("the replicas have differed at 3 calls"), std::string::npos);
}

TEST(Membership, in_a_rehearsal_one_that_comes_back_may_differ_from_what_was_done_then) {
  Membership members(2, 1, true);
  for (const int team : {0, 1}) (void)members.joined(team, 0, 1);
  (void)members.gone(0, 0, "process 1");
  (void)members.joined(2, 0, 1);
  ASSERT_TRUE(members.stands_by(2));
  const Orders orders = members.differ(0, "out, a write of 8 bytes at 0", {{1, {.sum = 1}}, {2, {.sum = 2}}});
  EXPECT_NE(lines(orders).find("the rehearsal goes on with what team 1 does"), std::string::npos);
  EXPECT_FALSE(members.is_lost(2));
  (void)members.differ(0, "out, a write of 9 bytes at 0", {{1, {.bytes = 8}}, {2, {.bytes = 9}}});
  EXPECT_TRUE(members.is_lost(2));
}

// The hub hears each process by a connection of its own: a twin's end may be heard before what the leader says of calls before that.
TEST(Membership, a_difference_with_one_that_has_ended_by_itself_counts) {
  Membership members(2, 0, true);
  for (const int team : {0, 1}) (void)members.joined(team, 0, 1);
  (void)members.leaves(1, 0, false, 6);
  EXPECT_NE(lines(members.differ(0, "out, a write of 8 bytes at 0", {{0, {.sum = 1}}, {1, {.sum = 2}}})).find("rank 0 differ"), std::string::npos);
  EXPECT_EQ(members.differences(), 1u);
}

TEST(Membership, of_three_the_one_that_differs_is_out) {
  Membership members(3);
  for (int team = 0; team < 3; ++team) (void)members.joined(team, 0, 1);
  const Orders orders = members.differ(0, "out", {{0, {.sum = 1}}, {1, {.sum = 2}}, {2, {.sum = 1}}});
  EXPECT_EQ(kinds(orders), (std::vector{Order::kill, Order::say, Order::live}));
  EXPECT_EQ(orders[0].team, 1);
  EXPECT_EQ(members.living(0), 5u);
}

TEST(Membership, of_three_the_leader_is_out_where_it_differs) {
  Membership members(3);
  for (int team = 0; team < 3; ++team) (void)members.joined(team, 0, 1);
  const Orders orders = members.differ(0, "out", {{0, {.sum = 2}}, {1, {.sum = 1}}, {2, {.sum = 1}}});
  EXPECT_EQ(kinds(orders), (std::vector{Order::kill, Order::say, Order::live}));
  EXPECT_EQ(orders[0].team, 0);
  EXPECT_EQ(members.living(0), 6u);
}

TEST(Membership, of_differences_between_messages_the_first_one_is_judged) {
  Membership members = two_teams();
  members.hold(1, "a write", {{0, {.sum = 1}}, {1, {.sum = 2}}}, 9);
  members.hold(0, "message 8", {{0, {.sum = 1}}, {1, {.sum = 2}}}, 7);
  members.hold(1, "message 10", {{0, {.sum = 1}}, {1, {.sum = 2}}}, 9);
  const Orders orders = members.judge();
  EXPECT_EQ(end_of(orders), replicas_differ);
  EXPECT_NE(lines(orders).find("rank 0 differ: message 8"), std::string::npos);
  EXPECT_TRUE(members.judge().empty());
}

TEST(Membership, a_difference_with_one_that_was_lost_means_nothing) {
  Membership members = two_teams();
  (void)members.gone(0, 0, "");
  EXPECT_TRUE(members.differ(1, "out", {{0, {.sum = 1}}, {1, {.sum = 2}}}).empty());
}

TEST(Membership, a_rank_whose_twin_never_comes_is_not_waited_for) {
  Membership members(2);
  (void)members.joined(0, 0, 1);
  const auto orders = kinds(members.launcher_ended(1, 1));
  EXPECT_NE(std::find(orders.begin(), orders.end(), Order::introduce), orders.end());
  EXPECT_EQ(members.living(0), 1u);
}

TEST(Membership, a_team_that_does_not_come_up_is_lost_and_the_other_ones_status_counts) {
  for (const bool ends_first : {false, true}) {
    Membership members(2);
    std::string said;
    if (ends_first) said += lines(members.launcher_ended(0, 1));
    EXPECT_EQ(said, "") << "nothing is known of the other one yet";
    for (int rank = 0; rank < 2; ++rank) said += lines(members.joined(1, rank, 2));
    if (!ends_first) said += lines(members.launcher_ended(0, 1));
    EXPECT_EQ(said, "team 0 has not come up: its launcher ended with 1; team 1 goes on alone, and nothing is compared any more\n");
    EXPECT_EQ(members.lost_teams(), 1);
    (void)members.leaves(1, 0, false);
    (void)members.leaves(1, 1, false);
    EXPECT_EQ(end_of(members.launcher_ended(1, 0)), 0);
  }
}

TEST(Membership, a_team_that_comes_up_in_part_is_lost) {
  Membership members(2);
  for (const auto& [team, rank] : {std::pair{0, 0}, {0, 1}, {1, 0}}) (void)members.joined(team, rank, 2);
  EXPECT_EQ(lines(members.launcher_ended(1, 3)), "") << "its rank has not said how it ended";
  EXPECT_EQ(lines(members.leaves(1, 0, false)),
            "team 1 has not come up whole: its launcher ended with 3; team 0 goes on alone, and nothing is compared any more\n");
}

TEST(Membership, a_team_that_aborts_before_all_have_come_is_no_loss) {
  Membership members(2);
  for (const auto& [team, rank] : {std::pair{0, 0}, {0, 1}, {1, 0}}) (void)members.joined(team, rank, 2);
  EXPECT_EQ(lines(members.leaves(1, 0, true)) + lines(members.launcher_ended(1, 3)), "");
}

TEST(Membership, programs_of_which_no_process_takes_part_are_no_loss) {
  Membership members(2);
  EXPECT_EQ(lines(members.launcher_ended(0, 2)), "");
  const Orders orders = members.launcher_ended(1, 2);
  EXPECT_EQ(lines(orders), "");
  EXPECT_EQ(end_of(orders), 2);
}

TEST(Membership, a_replica_that_ends_after_fewer_calls_than_its_twin_is_named) {
  Membership members = two_teams();
  EXPECT_EQ(lines(members.leaves(0, 0, false, 3)), "");
  EXPECT_EQ(lines(members.leaves(1, 0, false, 3)), "");
  EXPECT_EQ(lines(members.leaves(0, 1, false, 2)), "");
  EXPECT_EQ(lines(members.leaves(1, 1, false, 9)),
            "the replicas of rank 1 have ended differently, team 0 after 2 calls on files and team 1 after 9 calls on files: what only one of "
            "them did was not compared\n");
}

TEST(Membership, a_lost_team_is_not_compared) {
  Membership members = two_teams();
  (void)members.leaves(0, 0, false, 3);
  (void)members.gone(0, 1, "");
  EXPECT_EQ(lines(members.leaves(1, 0, false, 9)), "");
}

// -------------------------------------------------------------------------------------------------------------------- started again

// The first team is lost, and its command is started again as team 2.
Membership one_comes_back(int relaunches = 1) {
  Membership members(2, relaunches);
  for (int team = 0; team < 2; ++team)
    for (int rank = 0; rank < 2; ++rank) (void)members.joined(team, rank, 2);
  (void)members.gone(0, 1, "");
  return members;
}

TEST(Membership, a_lost_team_is_started_again_and_follows_the_one_that_goes_on) {
  Membership members(2, 1);
  for (int team = 0; team < 2; ++team)
    for (int rank = 0; rank < 2; ++rank) (void)members.joined(team, rank, 2);
  const Orders orders = members.gone(0, 1, "process 12 on a");
  EXPECT_EQ(kinds(orders), (std::vector{Order::kill, Order::say, Order::live, Order::start}));
  EXPECT_EQ(orders[3].team, 2);
  EXPECT_EQ(orders[3].teams, std::vector{1});
  EXPECT_EQ(lines(orders), "rank 1 of team 0 (process 12 on a) has died; team 1 goes on, and the command is started again as team 2\n");
  EXPECT_EQ(members.living(0), 2u);
  EXPECT_EQ(members.lost_teams(), 1);
  EXPECT_EQ(members.started_again(), 1);
}

TEST(Membership, a_rank_that_has_caught_up_is_a_member_and_the_team_is_when_all_are) {
  Membership members = one_comes_back();
  const Orders came = members.joined(2, 0, 2);
  ASSERT_EQ(kinds(came), std::vector{Order::introduce});
  EXPECT_EQ(came[0].team, 2);
  (void)members.joined(2, 1, 2);
  EXPECT_EQ(kinds(members.caught_up(2, 0)), std::vector{Order::live});
  EXPECT_EQ(members.living(0), 6u);
  EXPECT_EQ(members.living(1), 2u);
  EXPECT_TRUE(members.stands_by(2));
  EXPECT_EQ(lines(members.caught_up(2, 1)), "team 2 has caught up; team 1 and team 2 go on\n");
  EXPECT_FALSE(members.stands_by(2));
}

TEST(Membership, the_one_that_was_followed_may_be_lost_at_any_time) {
  for (const bool caught_up : {false, true}) {
    Membership members = one_comes_back();
    for (int rank = 0; rank < 2; ++rank) (void)members.joined(2, rank, 2);
    for (int rank = 0; rank < 2 && caught_up; ++rank) (void)members.caught_up(2, rank);
    EXPECT_NE(lines(members.gone(1, 0, "")).find("team 2 goes on alone"), std::string::npos);
    EXPECT_EQ(members.living(1), 4u);
    (void)members.leaves(2, 0, false);
    (void)members.leaves(2, 1, false);
    EXPECT_EQ(end_of(members.launcher_ended(2, 5)), 5);
  }
}

TEST(Membership, a_team_that_stands_by_is_let_go_when_the_job_is_over) {
  Membership members = one_comes_back();
  (void)members.joined(2, 0, 2);
  (void)members.leaves(1, 0, false);
  (void)members.leaves(1, 1, false);
  const Orders orders = members.launcher_ended(1, 0);
  EXPECT_EQ(end_of(orders), 0);
  EXPECT_EQ(std::count_if(orders.begin(), orders.end(), [](const Order& order) { return order.what == Order::kill && order.team == 2; }), 1);
  EXPECT_EQ(members.lost_teams(), 1);
  EXPECT_TRUE(members.was_let_go(2));
}

TEST(Membership, a_team_that_cannot_catch_up_is_the_last_that_was_started_again) {
  Membership members = one_comes_back(2);
  (void)members.joined(2, 0, 2);
  const Orders orders = members.refused(2, 0, "in.dat has been changed");
  EXPECT_EQ(lines(orders), "rank 0 of team 2 cannot catch up: in.dat has been changed; team 1 goes on alone, and nothing is compared any more\n");
  EXPECT_EQ(kinds(orders), (std::vector{Order::kill, Order::say, Order::live}));
}

TEST(Membership, a_team_that_cannot_go_on_from_a_checkpoint_is_started_from_the_beginning) {
  Membership members = one_comes_back(1);
  (void)members.joined(2, 0, 2);
  const Orders orders = members.refused(2, 0, "it receives from anybody", true);
  EXPECT_EQ(
      lines(orders),
      "rank 0 of team 2 cannot go on from a checkpoint: it receives from anybody; team 1 goes on, and the command is started again as team 3\n");
  EXPECT_EQ(kinds(orders), (std::vector{Order::kill, Order::say, Order::live, Order::start}));
  EXPECT_EQ(orders.back().code, 1);
  (void)members.joined(3, 0, 2);
  EXPECT_EQ(kinds(members.refused(3, 0, "again", true)), (std::vector{Order::kill, Order::say, Order::live})) << "not for ever";
}

TEST(Membership, one_that_is_beyond_what_was_written_down_goes_on_as_the_last_one_alone) {
  bool may = true;
  Membership others_left = one_comes_back();
  (void)others_left.joined(2, 0, 2);
  EXPECT_EQ(kinds(others_left.goes_beyond(2, 0, "it is beyond", may)), (std::vector{Order::kill, Order::say, Order::live}));
  EXPECT_FALSE(may);
  Membership last = one_comes_back(2);
  (void)last.joined(2, 0, 2);
  (void)last.gone(1, 0, "");
  ASSERT_EQ(last.teams(), 4);  // one goes by its log, in which that is missing
  EXPECT_EQ(kinds(last.goes_beyond(2, 0, "it is beyond", may)), (std::vector{Order::kill, Order::live}));
  EXPECT_TRUE(may);
  EXPECT_TRUE(last.was_let_go(3));
  EXPECT_FALSE(last.is_lost(2));
}

TEST(Membership, what_is_not_written_down_is_said_once) {
  Membership members = one_comes_back(2);
  EXPECT_EQ(lines(members.log_ends("the log has no more room")), "the log has no more room; a lost team is not started again any more\n");
  EXPECT_TRUE(members.log_ends("the log has no more room").empty());
  EXPECT_EQ(kinds(members.gone(2, 0, "")), (std::vector{Order::kill, Order::say, Order::live}));
}

TEST(Membership, one_that_comes_back_is_not_a_judge_of_the_others) {
  Membership members = one_comes_back();
  for (int rank = 0; rank < 2; ++rank) (void)members.joined(2, rank, 2);
  (void)members.caught_up(2, 0);
  const Orders orders = members.differ(0, "out", {{1, {.sum = 1}}, {2, {.sum = 2}}});
  EXPECT_EQ(kinds(orders), (std::vector{Order::kill, Order::say, Order::live}));
  EXPECT_EQ(orders[0].team, 2);
}

Membership one_has_resumed(int relaunches = 1) {
  Membership members = one_comes_back(relaunches);
  for (int rank = 0; rank < 2; ++rank) (void)members.joined(2, rank, 2), (void)members.caught_up(2, rank);
  return members;
}

// By the name of a file alone it has become a member.
TEST(Membership, one_that_has_resumed_is_out_where_its_first_bytes_differ) {
  Membership members = one_has_resumed(2);
  EXPECT_FALSE(members.stands_by(2));
  const Orders orders = members.differ(0, "out, a write", {{1, {.sum = 1}}, {2, {.sum = 2, .proof = Claim::unproven}}});
  EXPECT_EQ(kinds(orders), (std::vector{Order::kill, Order::say, Order::live})) << "another one would not get on better";
  EXPECT_EQ(orders[0].team, 2);
  EXPECT_EQ(lines(orders),
            "rank 0 of team 2 does not go on as the others do: out, a write; team 1 goes on alone, and nothing is compared any more\n");
}

TEST(Membership, one_that_has_resumed_and_differs_begins_anew_where_it_may) {
  Membership members = one_has_resumed();
  const Orders orders = members.differ(0, "out, a write", {{1, {.sum = 1}}, {2, {.sum = 2, .proof = Claim::unproven_may_begin_anew}}});
  EXPECT_EQ(kinds(orders), (std::vector{Order::kill, Order::say, Order::live, Order::start}));
  EXPECT_EQ(orders[3].code, 1);
  EXPECT_NE(lines(orders).find("started again as team 3"), std::string::npos);
}

TEST(Membership, one_that_has_resumed_and_had_the_same_bytes_is_as_good_as_the_others) {
  Membership members = one_has_resumed();
  EXPECT_EQ(end_of(members.differ(0, "out, a write", {{1, {.sum = 1}}, {2, {.sum = 2}}})), replicas_differ);
}

TEST(Membership, one_that_has_resumed_counts_where_it_says_what_another_one_does) {
  Membership members(3, 1);
  for (int team = 0; team < 3; ++team) (void)members.joined(team, 0, 1);
  (void)members.gone(0, 0, "");
  (void)members.joined(3, 0, 1);
  (void)members.caught_up(3, 0);
  const Orders orders = members.differ(0, "out", {{1, {.sum = 1}}, {2, {.sum = 2}}, {3, {.sum = 1, .proof = Claim::unproven}}});
  ASSERT_FALSE(orders.empty());
  EXPECT_EQ(orders[0].team, 2);
  EXPECT_EQ(end_of(orders), -1);
}

TEST(Membership, two_that_have_resumed_and_differ_stop_the_job) {
  Membership members = one_has_resumed();
  EXPECT_EQ(end_of(members.differ(0, "out", {{1, {.sum = 1, .proof = Claim::unproven}}, {2, {.sum = 2, .proof = Claim::unproven}}})),
            replicas_differ);
}

TEST(Membership, of_three_one_that_follows_a_lost_team_begins_anew) {
  Membership members(3, 2);
  for (int team = 0; team < 3; ++team) (void)members.joined(team, 0, 1);
  EXPECT_EQ(members.gone(0, 0, "").back().teams, std::vector{1});
  (void)members.joined(3, 0, 1);
  const Orders orders = members.gone(1, 0, "");
  EXPECT_EQ(kinds(orders), (std::vector{Order::kill, Order::kill, Order::say, Order::live, Order::start, Order::start}));
  EXPECT_EQ(orders[1].team, 3);
  EXPECT_EQ(orders[4].teams, std::vector{2});
  EXPECT_EQ(members.lost_teams(), 2);
}

TEST(Membership, a_rank_that_dies_in_the_team_that_came_back_as_well_is_the_programs_fault) {
  Membership members = one_comes_back();
  (void)members.gone(1, 1, "");
  (void)members.joined(2, 1, 2);
  EXPECT_EQ(end_of(members.gone(2, 1, "")), all_lost);
  for (const int team : {0, 1, 2}) members.died_at(team, 1, {.calls = 7});
  EXPECT_NE(members.fault_of_the_program().find("rank 1 has died at the same place in every team"), std::string::npos);
}

TEST(Output, each_byte_is_delivered_once_whoever_is_ahead) {
  Output output;
  const auto fresh = [&](uint64_t position, std::string_view text) { return std::string(text_of(output.fresh(0, 0, position, bytes_of(text)))); };
  std::string all = fresh(0, "hello ");
  all += fresh(0, "hel");
  all += fresh(3, "lo wor");
  all += fresh(6, "w");
  all += fresh(9, "ld");
  EXPECT_EQ(all, "hello world");
}

// Who waits for a terminal must not keep the hub from hearing who lives.
TEST(Outlet, writes_in_order_and_nobody_waits_for_it) {
  const auto outlet = std::make_shared<Outlet>();
  ASSERT_TRUE(outlet->start());
  std::mutex held_back;
  std::string written;
  held_back.lock();
  outlet->give([&] {
    std::lock_guard now(held_back);
    written += "one ";
  });
  outlet->give([&] { written += "two"; });
  held_back.unlock();
  outlet->wait();
  EXPECT_EQ(written, "one two");
}

TEST(Membership, of_two_that_do_not_reach_each_other_the_one_that_says_so_is_lost) {
  Membership members = two_teams();
  const Orders orders = members.unreached(1, 0, "process 7 on a", 0, "nobody answers");
  EXPECT_EQ(kinds(orders), (std::vector{Order::kill, Order::say, Order::live}));
  EXPECT_EQ(orders[0].team, 1);
  EXPECT_EQ(lines(orders),
            "rank 0 of team 1 does not reach its twin of team 0 (process 7 on a): nobody answers; team 0 goes on alone, and nothing is compared any "
            "more\n");
  EXPECT_TRUE(members.unreached(1, 1, "process 8 on a", 0, "nobody answers").empty());
}

TEST(Awaiting, whoever_asks_first_tells_when_all_wait_or_are_gone) {
  using Who = Awaiting::Who;
  Awaiting awaiting;
  EXPECT_FALSE(awaiting.has_begun());
  awaiting.begin({{0, 0}, {0, 1}, {1, 0}, {1, 1}});
  EXPECT_TRUE(awaiting.asks({0, 1}).empty());
  EXPECT_TRUE(awaiting.waits({0, 0}).empty());
  EXPECT_TRUE(awaiting.waits({1, 1}).empty());
  EXPECT_TRUE(awaiting.waits({0, 1}).empty());
  EXPECT_TRUE(awaiting.asks({1, 1}).empty());
  EXPECT_EQ(awaiting.waits({1, 0}), (std::vector<Who>{{0, 1}, {1, 1}}));
  EXPECT_EQ(awaiting.asks({0, 0}), (std::vector<Who>{{0, 0}})) << "all wait by now";
}

TEST(SharedPointers, a_call_is_made_once_for_all_replicas_of_a_rank) {
  constexpr uint64_t file = 5;
  SharedPointers pointers;
  const PointerCall add{PointerCall::add, 10}, load;
  EXPECT_EQ(pointers.call(file, 0, 1, add), 0);
  EXPECT_EQ(pointers.call(file, 1, 1, add), 10);
  EXPECT_EQ(pointers.call(file, 0, 1, add), 0) << "another leader, which repeats it";
  EXPECT_EQ(pointers.call(file, 0, 2, load), 20);
  EXPECT_EQ(pointers.call(file, 0, 3, {PointerCall::store, 4}), 20);
  EXPECT_EQ(pointers.call(file, 1, 2, add), 4);
  EXPECT_EQ(pointers.call(file, 0, 3, {PointerCall::store, 4}), 20);
  EXPECT_EQ(pointers.call(file, 1, 3, load), 14) << "it was not stored again";
  EXPECT_EQ(pointers.call(file, 1, 3, add), 14) << "the lost leader's clocks said otherwise";
  EXPECT_EQ(pointers.call(file, 1, 4, {PointerCall::add, INT64_MAX}), -1);
  EXPECT_EQ(pointers.call(file + 1, 1, 1, load), 0);
}

TEST(SharedPointers, of_files_that_nobody_has_used_for_long_are_forgotten) {
  SharedPointers pointers;
  for (uint64_t file = 0; file < 4200; ++file) (void)pointers.call(file, 0, 1, {PointerCall::add, 1});
  EXPECT_LE(pointers.kept(), 4096u);
  EXPECT_EQ(pointers.call(4199, 0, 2, {}), 1);
  EXPECT_EQ(pointers.call(0, 1, 1, {PointerCall::add, 1}), 1) << "it may be open still: where its pointer stands is not forgotten";
}

TEST(TeamOrders, are_text_and_back) {
  TeamOrders orders;
  orders.team = 1, orders.teams = 3, orders.deadline_ms = 1234;
  orders.secret[5] = std::byte(0xab);
  orders.hub = "unix a\ntcp 10.0.0.1 99\n";
  const auto back = parse_orders(text_of(orders));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->team, 1);
  EXPECT_FALSE(back->apart);
  EXPECT_EQ(back->secret, orders.secret);
  EXPECT_EQ(back->hub, orders.hub);
  orders.reach = transport::Reach::network, orders.apart = true;
  orders.team = 5, orders.follows = {63, 10, 3, 1}, orders.log = "/a place/of logs", orders.log_bytes = 99,
  orders.joins = TeamOrders::where_it_resumes;
  orders.clock = TeamOrders::Clock::own;
  const auto again = parse_orders(text_of(orders));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->follows, orders.follows);
  EXPECT_EQ(again->joins, TeamOrders::where_it_resumes);
  EXPECT_EQ(again->clock, TeamOrders::Clock::own);
  EXPECT_EQ(again->log, orders.log);
  EXPECT_EQ(again->reach, orders.reach);
  EXPECT_TRUE(again->apart);
  EXPECT_EQ(again->hub, orders.hub);
  EXPECT_FALSE(parse_orders("1 3 0 10 abc unix a"));
  EXPECT_FALSE(parse_orders("3 3 0 0 10 " + std::string(64, '0') + " 0 0 0 0 0 0 0 - unix a"));
  EXPECT_TRUE(parse_orders("2 3 0 0 10 " + std::string(64, '0') + " 0 0 0 0 0 0 0 - unix a"));
  EXPECT_FALSE(parse_orders(""));
}

TEST(Output, of_a_team_that_resumed_begins_where_it_joins) {
  const std::string mark(joined_mark);
  Output output;
  const auto all = [&](const char* text, uint64_t at) { return std::string(text_of(output.fresh(3, 0, at, bytes_of(text)))); };
  const auto resumed = [&](const std::string& text) { return std::string(text_of(output.fresh_of_resumed(2, 3, 0, bytes_of(text)))); };
  EXPECT_EQ(all("begins at 0\nstep 1\nstep 2\n", 0), "begins at 0\nstep 1\nstep 2\n");
  EXPECT_EQ(resumed("begins at 1\n" + mark.substr(0, 5)), "");
  EXPECT_EQ(resumed(mark.substr(5) + "st"), "");
  EXPECT_EQ(resumed("ep 2\nstep 3\n"), "step 3\n") << "it is ahead by a line";
  EXPECT_EQ(all("step 3\nstep 4\n", 26), "step 4\n");
  EXPECT_EQ(resumed("step 4\n"), "");
  EXPECT_EQ(resumed("step 5\n"), "step 5\n");
}

TEST(Output, of_a_team_that_resumed_waits_until_it_has_a_place_or_is_the_last) {
  Output output;
  (void)output.fresh(3, 0, 0, bytes_of("begins at 0\n"));
  EXPECT_TRUE(output.fresh_of_resumed(2, 3, 0, bytes_of("begins at 60\n" + std::string(joined_mark) + "ends\n")).empty());
  EXPECT_EQ(text_of(output.let_out(2, 3, 0, false)), "ends\n");
  EXPECT_EQ(text_of(output.fresh_of_resumed(2, 3, 0, bytes_of("more\n"))), "more\n");
  EXPECT_TRUE(output.fresh(3, 0, 12, bytes_of("ends\n")).empty()) << "what a lost one had printed comes late";
  Output other;
  (void)other.fresh_of_resumed(2, 3, 0, bytes_of("the end\n"));
  EXPECT_TRUE(other.let_out(2, 3, 0, false).empty()) << "it may still join";
  EXPECT_EQ(text_of(other.let_out(2, 3, 0, true)), "the end\n");
}

}  // namespace
}  // namespace holdfast::redundant
