#include <gtest/gtest.h>

#include <thread>

#include "exchange/exchange.hpp"

namespace holdfast::exchange {
namespace {

Bytes filled(size_t count, int value) { return Bytes(count, static_cast<std::byte>(value)); }

// Runs `body` once per rank, each in a thread of its own.
template <class Body>
void on_ranks(int ranks, Body body) {
  auto exchanges = make_threads(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { body(*exchanges[rank]); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Solo, gives_back_what_it_was_given) {
  auto solo = make_solo();
  EXPECT_EQ(solo->rank(), 0);
  EXPECT_EQ(solo->size(), 1);
  solo->barrier();
  Bytes mine = filled(5, 7);
  EXPECT_EQ(solo->all_gather(mine), std::vector<Bytes>{mine});
  EXPECT_EQ(solo->all_to_all({mine}), std::vector<Bytes>{mine});
  EXPECT_EQ(solo->all_max({3, -4}), (std::vector<int64_t>{3, -4}));
}

class ThreadsOf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ThreadsOf, testing::Values(1, 2, 3, 16));

TEST_P(ThreadsOf, all_gather_brings_every_length_in_rank_order) {
  on_ranks(GetParam(), [](Exchange& exchange) {
    for (int round = 0; round < 50; ++round) {
      auto all = exchange.all_gather(filled(exchange.rank() * 3, exchange.rank() + round));
      ASSERT_EQ(all.size(), static_cast<size_t>(exchange.size()));
      for (int i = 0; i < exchange.size(); ++i) EXPECT_EQ(all[i], filled(i * 3, i + round));
    }
  });
}

TEST_P(ThreadsOf, all_to_all_brings_each_rank_its_own_also_when_empty) {
  on_ranks(GetParam(), [](Exchange& exchange) {
    for (int round = 0; round < 50; ++round) {
      std::vector<Bytes> to;
      for (int i = 0; i < exchange.size(); ++i) to.push_back(filled((exchange.rank() + i) % 3, exchange.rank() * 16 + i));
      auto from = exchange.all_to_all(to);
      ASSERT_EQ(from.size(), static_cast<size_t>(exchange.size()));
      for (int i = 0; i < exchange.size(); ++i) {
        EXPECT_EQ(from[i], filled((exchange.rank() + i) % 3, i * 16 + exchange.rank()));
      }
    }
  });
}

TEST_P(ThreadsOf, all_max_is_elementwise_and_the_same_everywhere) {
  on_ranks(GetParam(), [](Exchange& exchange) {
    for (int round = 0; round < 200; ++round) {
      auto most = exchange.all_max({exchange.rank(), -exchange.rank(), round});
      EXPECT_EQ(most, (std::vector<int64_t>{exchange.size() - 1, 0, round}));
    }
  });
}

TEST_P(ThreadsOf, nobody_passes_a_barrier_before_all_have_come) {
  std::atomic<int> arrived{0};
  const int ranks = GetParam();
  on_ranks(ranks, [&](Exchange& exchange) {
    for (int round = 1; round <= 50; ++round) {
      ++arrived;
      exchange.barrier();
      EXPECT_GE(arrived.load(), ranks * round);
      exchange.barrier();
    }
  });
}

TEST(ThreadsDeathTest, different_steps_at_once_are_a_bug_that_stops) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(on_ranks(2,
                        [](Exchange& exchange) {
                          if (exchange.rank() == 0) {
                            exchange.barrier();
                          } else {
                            exchange.all_max({1});
                          }
                        }),
               "different collective steps");
}

}  // namespace
}  // namespace holdfast::exchange
