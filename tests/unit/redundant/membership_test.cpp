// Who is declared lost, and what the job ends with.
#include <gtest/gtest.h>

#include <algorithm>

#include "redundant/membership/membership.hpp"
#include "redundant/membership/output.hpp"
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

TEST(Membership, a_launcher_may_be_noticed_before_its_ranks) {
  Membership members = two_teams();
  (void)members.leaves(0, 0, false);
  (void)members.leaves(0, 1, false);
  (void)members.launcher_ended(0, 0);
  EXPECT_EQ(end_of(members.launcher_ended(1, 0)), -1);  // its ranks have not said yet how they ended
  (void)members.leaves(1, 0, false);
  EXPECT_EQ(end_of(members.leaves(1, 1, false)), 0);
}

TEST(Membership, one_rank_dead_in_every_team_is_said_to_be_the_programs_fault) {
  Membership members = two_teams();
  (void)members.gone(0, 1, "");
  const Orders orders = members.gone(1, 1, "");
  EXPECT_EQ(end_of(orders), all_lost);
  EXPECT_NE(lines(orders).find("rank 1 has died in every team"), std::string::npos);
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

TEST(Membership, of_three_the_one_that_differs_is_out) {
  Membership members(3);
  for (int team = 0; team < 3; ++team) (void)members.joined(team, 0, 1);
  const Orders orders = members.differ(0, "out", {{0, {.sum = 1}}, {1, {.sum = 2}}, {2, {.sum = 1}}});
  EXPECT_EQ(kinds(orders), (std::vector{Order::kill, Order::say, Order::live}));
  EXPECT_EQ(orders[0].team, 1);
  EXPECT_EQ(members.living(0), 5u);
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

TEST(TeamOrders, are_text_and_back) {
  TeamOrders orders;
  orders.team = 1, orders.teams = 3, orders.deadline_ms = 1234;
  orders.secret[5] = std::byte(0xab);
  orders.hub = "unix a\ntcp 10.0.0.1 99\n";
  const auto back = parse_orders(text_of(orders));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->team, 1);
  EXPECT_EQ(back->secret, orders.secret);
  EXPECT_EQ(back->hub, orders.hub);
  EXPECT_FALSE(parse_orders("1 3 0 10 abc unix a"));
  EXPECT_FALSE(parse_orders("3 3 0 10 " + std::string(64, '0') + " unix a"));
  EXPECT_FALSE(parse_orders(""));
}

}  // namespace
}  // namespace holdfast::redundant
