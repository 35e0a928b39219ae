#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "layout/groups.hpp"
#include "planning/durability.hpp"
#include "planning/history.hpp"
#include "planning/interval.hpp"
#include "planning/reliability.hpp"
#include "planning/replicas.hpp"

namespace holdfast::planning {
namespace {

constexpr double kHour = 3600, kDay = 24 * kHour;

TEST(Interval, young_is_the_root_of_twice_the_product) { EXPECT_DOUBLE_EQ(young_interval({50 * kHour, 36, 0}), 3600 * std::sqrt(2 * 0.01 * 50)); }

TEST(Interval, daly_agrees_with_young_for_short_checkpoints_and_stops_at_the_mean_for_long_ones) {
  const Job cheap{1000 * kHour, 1, 0};
  EXPECT_NEAR(daly_interval(cheap) / young_interval(cheap), 1, 1e-3);
  EXPECT_DOUBLE_EQ(daly_interval({kHour, 2 * kHour, 0}), kHour);
  EXPECT_DOUBLE_EQ(daly_interval({kHour, 5 * kHour, 0}), kHour);
}

TEST(Interval, waste_is_least_near_dalys_interval) {
  for (const Job job : {Job{24 * kHour, 300, 600}, Job{6 * kHour, 1200, 60}, Job{5.9 * kDay, 30, 0}}) {
    double best = 1, at = 0;
    for (double interval = job.checkpoint / 4; interval < job.mtbf; interval *= 1.001) {
      if (const double here = waste(job, interval); here < best) best = here, at = interval;
    }
    EXPECT_NEAR(daly_interval(job) / at, 1, 0.01);
    EXPECT_LE(waste(job, daly_interval(job)), best * 1.0001);
    EXPECT_GE(waste(job, young_interval(job)), best);
  }
}

// The model's own story, told by dice.
TEST(Interval, waste_is_what_a_simulated_job_wastes) {
  const Job job{10000, 300, 500};
  const double interval = 2000;
  std::mt19937_64 random(1);
  std::exponential_distribution<double> failure(1 / job.mtbf);
  double clock = 0, useful = 0;
  for (int segment = 0; segment < 200000; ++segment) {
    // A failure on the way sends the job back to its last checkpoint; a restart can fail too.
    for (double left = interval + job.checkpoint;;) {
      const double next = failure(random);
      if (next >= left) {
        clock += left;
        break;
      }
      clock += next;
      left = job.restart + interval + job.checkpoint;
    }
    useful += interval;
  }
  // Daly counts a restart with every try, this story only after a failure: equal in the first order.
  EXPECT_NEAR(waste(job, interval), 1 - useful / clock, 0.02);
}

TEST(Durability, without_redundancy_it_is_the_first_failure_of_any_target) {
  EXPECT_DOUBLE_EQ(mean_time_to_loss({6, 600 * kDay, kDay}, 0), 100 * kDay);
}

TEST(Durability, a_mirror_of_two_is_the_textbook_formula) {
  const double mtbf = 1000 * kHour, rebuild = 10 * kHour;
  EXPECT_NEAR(mean_time_to_loss({2, mtbf, rebuild}, 1), (3 * mtbf * rebuild + mtbf * mtbf) / (2 * rebuild), 1);
}

TEST(Durability, is_what_simulated_targets_show) {
  const Targets targets{6, 100, 5};
  std::mt19937_64 random(2);
  std::exponential_distribution<double> unit(1);
  double total = 0;
  constexpr int kLives = 4000;
  for (int life = 0; life < kLives; ++life) {
    for (int lost = 0; lost <= 2;) {
      const double failing = (targets.count - lost) / targets.mtbf, mending = lost ? 1 / targets.rebuild : 0;
      total += unit(random) / (failing + mending);
      std::bernoulli_distribution fails(failing / (failing + mending));
      lost += fails(random) ? 1 : -1;
    }
  }
  EXPECT_NEAR(mean_time_to_loss(targets, 2) / (total / kLives), 1, 0.06);
}

TEST(Durability, more_redundancy_and_faster_repair_help) {
  const Targets slow{8, 365 * kDay, 7 * kDay}, fast{8, 365 * kDay, kDay};
  EXPECT_GT(probability_of_loss(slow, 1, kDay), probability_of_loss(slow, 2, kDay));
  EXPECT_GT(probability_of_loss(slow, 2, kDay), probability_of_loss(fast, 2, kDay));
  EXPECT_NEAR(probability_of_loss(slow, 0, 365 * kDay), 1 - std::exp(-8), 1e-12);
}

TEST(History, dates_and_kinds_are_read) {
  auto history =
      parse_history("# machine\n2009-02-14T06:30 failure\n2009-02-01\n\n2009-03-01 12:00:01,maintenance, all day\r\n2009-03-02Z planned\n");
  ASSERT_TRUE(history.ok()) << history.status().sentence();
  ASSERT_EQ(history->size(), 4u);
  EXPECT_EQ((*history)[0].when, 1233446400);
  EXPECT_TRUE((*history)[0].failure && (*history)[1].failure);
  EXPECT_FALSE((*history)[2].failure || (*history)[3].failure);
  EXPECT_EQ(date_of((*history)[1].when), "2009-02-14");
}

TEST(History, what_is_no_date_is_named_with_its_line) {
  for (const char* bad : {"yesterday", "2009-13-01", "2009-02-30", "2009-02-14T25:00", "14.02.2009", "2009-02-141"}) {
    auto history = parse_history(std::string("2009-01-01\n") + bad + "\n");
    ASSERT_FALSE(history.ok()) << bad;
    EXPECT_NE(history.status().sentence().find("line 2"), std::string::npos) << history.status().sentence();
    EXPECT_FALSE(parse_date(bad).ok()) << bad;
  }
}

TEST(History, periods_follow_the_calendar_and_count_their_own) {
  auto history = *parse_history("2009-01-31T23:59:59\n2009-02-01 maintenance\n2009-02-20\n2009-04-01\n");
  const auto months = count(history, *parse_date("2009-01-15"), *parse_date("2009-04-02"), Period::month);
  ASSERT_EQ(months.size(), 4u);
  EXPECT_EQ(months[0].failures, 1u);
  EXPECT_EQ(months[1].failures, 1u);
  EXPECT_EQ(months[1].interrupts, 2u);
  EXPECT_DOUBLE_EQ(*months[1].mtbf(), 28 * kDay);
  EXPECT_DOUBLE_EQ(*months[1].mtbi(), 14 * kDay);
  EXPECT_FALSE(months[2].mtbf());
  EXPECT_EQ(months[3].end - months[3].begin, int64_t(kDay));
  EXPECT_EQ(count(history, *parse_date("2009-01-15"), *parse_date("2009-07-01"), Period::quarter).size(), 2u);
  EXPECT_EQ(count(history, *parse_date("2009-01-15"), *parse_date("2009-07-01"), Period::all)[0].interrupts, 4u);
}

struct Setting {
  const char* name;
  Spread spread;
  double chunk, job;  // by exact fractions, n = 1000, f = 10
};

TEST(Reliability, is_what_exact_fractions_give) {
  for (const Setting& s : {Setting{"rep-4", {4, 3}, 5.07e-9, 1.27e-6}, Setting{"rs-4 on 8 nodes", {8, 4}, 1.69e-9, 2.11e-7},
                           Setting{"rs-4 on 4 nodes", {4, 2}, 2.87e-6, 7.18e-4}, Setting{"rs-8 on 16 nodes", {16, 8}, 4.28e-17, 3.04e-15}}) {
    EXPECT_NEAR(chunk_loss(1000, 10, s.spread) / s.chunk, 1, 2e-3) << s.name;
    EXPECT_NEAR(job_loss(layout::group_sizes(1000, s.spread.nodes), 10, s.spread.bears) / s.job, 1, 2e-3) << s.name;
  }
}

TEST(Reliability, of_a_small_job_is_the_share_of_all_ways_to_fail) {
  for (int failures = 0; failures <= 9; ++failures) {
    const std::vector<int> groups{4, 5};
    int lost = 0, all = 0, chunk = 0;
    for (unsigned ways = 0; ways < 1u << 9; ++ways) {
      if (__builtin_popcount(ways) != failures) continue;
      ++all;
      lost += __builtin_popcount(ways & 0xf) > 2 || __builtin_popcount(ways >> 4) > 2;
      chunk += __builtin_popcount(ways & 0xf) > 2;
    }
    EXPECT_NEAR(job_loss(groups, failures, 2), double(lost) / all, 1e-14) << failures;
    EXPECT_NEAR(chunk_loss(9, failures, {4, 2}), double(chunk) / all, 1e-14) << failures;
  }
}

// For the whole job, not for a chunk.
TEST(Reliability, four_copies_are_better_than_rs_4_from_44_failures_on) {
  const auto loss = [](const Spread& spread, int failures) { return job_loss(layout::group_sizes(1000, spread.nodes), failures, spread.bears); };
  EXPECT_GT(loss({4, 3}, 43), loss({8, 4}, 43));
  EXPECT_LT(loss({4, 3}, 44), loss({8, 4}, 44));
}

TEST(Reliability, with_poissons_failures_is_the_sum_over_their_number) {
  const auto groups = layout::group_sizes(64, 8);
  const double mean = 3;
  double sum = 0, weight = std::exp(-mean);
  for (int f = 0; f <= 64; ++f, weight *= mean / f) sum += weight * job_loss(groups, f, 4);
  EXPECT_NEAR(job_loss_in(groups, mean, 4) / sum, 1, 1e-9);
}

TEST(Replicas, without_return_the_last_of_them_is_the_end) {
  EXPECT_DOUBLE_EQ(mean_time_to_interruption({1, 10, 0}), 10);
  EXPECT_DOUBLE_EQ(mean_time_to_interruption({2, 10, 0}), 15);
  EXPECT_NEAR(mean_time_to_interruption({3, 10, 0}), 18.33, 0.01);
  EXPECT_NEAR(interrupted_within({1, 10, 0}, 10), 0.632, 0.001);
  EXPECT_NEAR(interrupted_within({2, 10, 0}, 10), 0.400, 0.001);
}

TEST(Replicas, that_come_back_soon_last_long) {
  EXPECT_NEAR(mean_time_to_interruption({2, 1, 0.1}), 6.5, 1e-9);
  EXPECT_NEAR(mean_time_to_interruption({2, 1, 0.01}), 51.5, 1e-9);
  EXPECT_GT(mean_time_to_interruption({3, 1, 0.1}), mean_time_to_interruption({2, 1, 0.1}) * 3);
}

TEST(Replicas, are_what_simulated_teams_show) {
  std::mt19937_64 random(5);
  for (const Replicated job : {Replicated{2, 1, 0.2}, Replicated{3, 1, 0.5}, Replicated{3, 1, 0}}) {
    constexpr int trials = 20000;
    double sum = 0;
    for (int i = 0; i < trials; ++i)
      for (int living = job.teams; living > 0;) {
        const double lost = living / job.team_mtbf, back = job.back > 0 ? (job.teams - living) / job.back : 0;
        sum += std::exponential_distribution<>(lost + back)(random);
        living += std::uniform_real_distribution<>(0, lost + back)(random) < lost ? -1 : 1;
      }
    EXPECT_NEAR(sum / trials / mean_time_to_interruption(job), 1, 0.03);
  }
}

TEST(Groups, have_the_width_at_least_and_no_node_is_left_out) {
  for (int nodes = 1; nodes < 200; ++nodes)
    for (int width = 1; width <= 20; ++width) {
      const auto groups = layout::group_sizes(nodes, width);
      int sum = 0;
      for (const int size : groups) sum += size;
      EXPECT_EQ(sum, nodes < width ? 0 : nodes);
      for (const int size : groups) EXPECT_TRUE(size >= width && size < 2 * width) << nodes << " nodes, groups of " << width;
    }
}

TEST(Reliability, a_trial_tells_a_wrong_formula) {
  const auto groups = layout::group_sizes(100, 8);
  const auto more_than = [](int bears) {
    return [bears](int, const std::vector<bool>& lost) { return std::count(lost.begin(), lost.end(), true) > bears; };
  };
  EXPECT_LE(std::abs(try_out(groups, 20, 4, more_than(4), 20000, 1).z()), 4);
  EXPECT_GT(std::abs(try_out(groups, 20, 4, more_than(5), 20000, 1).z()), 4);
}

}  // namespace
}  // namespace holdfast::planning
