// Any m units of a row may be lost, whichever they are; whatever is wanted comes back bit for bit.
#include "coding/code.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>
#include <thread>

#include "base/bytes.hpp"
#include "coding/kernel.hpp"

namespace holdfast::coding {
namespace {

struct Row {
  Row(const Code& code, size_t bytes, uint64_t seed) : units(size_t(code.k() + code.m()), Bytes(bytes)) {
    std::mt19937_64 random(seed);
    for (int u = 0; u < code.k(); ++u)
      for (auto& b : units[size_t(u)]) b = std::byte(random());
    std::vector<const std::byte*> data;
    std::vector<std::byte*> redundancy;
    for (size_t u = 0; u < units.size(); ++u)
      if (int(u) < code.k()) data.push_back(units[u].data());
      else redundancy.push_back(units[u].data());
    code.encode(data.data(), redundancy.data(), bytes);
  }
  std::vector<Bytes> units;
};

// Reconstructs `wanted` from `survivors` and compares.
void expect_reconstructed(const Code& code, const Row& row, const std::vector<int>& survivors, const std::vector<int>& wanted) {
  const size_t bytes = row.units[0].size();
  std::vector<const std::byte*> from;
  for (int unit : survivors) from.push_back(row.units[size_t(unit)].data());
  std::vector<Bytes> into(wanted.size(), Bytes(bytes, std::byte{0xee}));
  std::vector<std::byte*> to;
  for (auto& unit : into) to.push_back(unit.data());
  Status status = code.reconstruct(survivors, from.data(), wanted, to.data(), bytes);
  ASSERT_TRUE(status.ok()) << status.sentence();
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_EQ(into[i], row.units[size_t(wanted[i])]) << "k=" << code.k() << " m=" << code.m() << " unit " << wanted[i];
}

std::vector<int> units_of_mask(unsigned mask, int width, bool set) {
  std::vector<int> units;
  for (int u = 0; u < width; ++u)
    if (bool(mask >> u & 1) == set) units.push_back(u);
  return units;
}

TEST(Code, every_loss_of_up_to_m_units_comes_back_for_every_small_code) {
  for (int k = 1; k <= 8; ++k) {
    for (int m = 0; m <= 4; ++m) {
      auto code = Code::make(k, m);
      ASSERT_EQ(code->k(), k);
      ASSERT_EQ(code->m(), m);
      const Row row(*code, 67, uint64_t(k * 100 + m));  // an odd length: the kernel's tail is used too
      for (unsigned lost = 0; lost < 1u << (k + m); ++lost)
        if (std::popcount(lost) <= m) expect_reconstructed(*code, row, units_of_mask(lost, k + m, false), units_of_mask(lost, k + m, true));
    }
  }
}

TEST(Code, random_losses_of_the_largest_codes_come_back) {
  std::mt19937 random(7);
  for (auto [k, m] : {std::pair{32, 8}, {31, 8}, {16, 8}, {17, 7}, {32, 1}, {9, 6}}) {
    auto code = Code::make(k, m);
    const Row row(*code, 200, uint64_t(k));
    std::vector<int> order(size_t(k + m));
    std::iota(order.begin(), order.end(), 0);
    for (int pattern = 0; pattern < 4096; ++pattern) {
      std::shuffle(order.begin(), order.end(), random);
      expect_reconstructed(*code, row, {order.begin(), order.begin() + k}, {order.begin() + k, order.end()});
    }
  }
}

TEST(Code, survivors_come_in_any_order_and_may_be_more_than_k) {
  auto code = Code::make(4, 3);
  const Row row(*code, 1000, 1);
  expect_reconstructed(*code, row, {6, 2, 0, 5}, {1, 3, 4});
  expect_reconstructed(*code, row, {6, 2, 0, 5, 1}, {3, 4});
}

TEST(Code, a_wanted_unit_that_survives_is_handed_back_as_it_is) {
  auto code = Code::make(4, 2);
  const Row row(*code, 1000, 2);
  expect_reconstructed(*code, row, {1, 2, 3, 5}, {1, 0, 5, 4});
  expect_reconstructed(*code, row, {1, 2, 3, 5, 0}, {0});
  expect_reconstructed(*code, row, {0, 1, 2, 3}, {});
}

TEST(Code, every_length_from_nothing_to_beyond_a_kernel_block_is_right) {
  auto code = Code::make(5, 3);
  for (size_t bytes = 0; bytes < 300; ++bytes) expect_reconstructed(*code, Row(*code, bytes, bytes), {7, 5, 1, 3, 4}, {0, 2, 6});
  for (size_t bytes : {size_t(65535), size_t(65536), size_t(65537), size_t(1 << 20), size_t((1 << 20) + 4095)})
    expect_reconstructed(*code, Row(*code, bytes, bytes), {7, 5, 1, 3, 4}, {0, 2, 6});
}

TEST(Code, one_data_unit_means_copies) {
  auto code = Code::make(1, 3);
  const Row row(*code, 999, 3);
  for (int u = 1; u < 4; ++u) EXPECT_EQ(row.units[size_t(u)], row.units[0]);
}

TEST(Code, redundancy_differs_from_every_data_unit) {
  // A code whose redundancy were a copy or a plain XOR would still pass some patterns; this one is Cauchy.
  auto code = Code::make(3, 2);
  const Row row(*code, 64, 4);
  Bytes sum(64);
  for (int u = 0; u < 3; ++u)
    for (size_t i = 0; i < 64; ++i) sum[i] ^= row.units[size_t(u)][i];
  EXPECT_NE(row.units[3], row.units[4]);
  EXPECT_NE(row.units[4], sum);
}

TEST(Code, fewer_than_k_survivors_are_a_loss_and_never_bytes) {
  for (auto [k, m] : {std::pair{4, 2}, {1, 2}}) {
    auto code = Code::make(k, m);
    const Row row(*code, 64, 5);
    std::vector<int> survivors(size_t(k - 1));
    std::iota(survivors.begin(), survivors.end(), 0);
    std::vector<const std::byte*> from;
    for (int unit : survivors) from.push_back(row.units[size_t(unit)].data());
    Bytes into(64, std::byte{0xee});
    std::byte* to = into.data();
    const int wanted = k;
    Status status = code->reconstruct(survivors, from.data(), {&wanted, 1}, &to, 64);
    EXPECT_EQ(status.kind(), Kind::lost);
    EXPECT_EQ(into, Bytes(64, std::byte{0xee}));
  }
}

TEST(Code, a_survivor_named_twice_or_out_of_range_is_refused) {
  auto code = Code::make(2, 2);
  const Row row(*code, 64, 6);
  const std::byte* from[] = {row.units[0].data(), row.units[0].data()};
  Bytes into(64);
  std::byte* to = into.data();
  const int wanted = 1;
  for (std::vector<int> survivors : {std::vector{0, 0}, {0, 4}, {-1, 0}})
    EXPECT_EQ(code->reconstruct(survivors, from, {&wanted, 1}, &to, 64).kind(), Kind::internal);
}

// A part at a time, by whoever has it.
TEST(Code, a_unit_is_the_sum_of_others_each_times_its_coefficient) {
  std::mt19937 random(5);
  for (const auto& [k, m] : {std::pair(1, 2), std::pair(2, 1), std::pair(4, 2), std::pair(8, 3), std::pair(32, 8)}) {
    auto code = Code::make(k, m);
    for (const size_t bytes : {size_t(1), size_t(31), size_t(64), size_t(1000), size_t(70000)}) {
      const Row row(*code, bytes, 9);
      std::vector<int> order(size_t(k + m));
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      const std::vector<int> survivors(order.begin(), order.begin() + k);
      const auto coefficients = code->coefficients(survivors, order.back());
      ASSERT_TRUE(coefficients.ok()) << coefficients.status().sentence();
      Bytes sum(bytes);
      for (size_t i = 0; i < survivors.size(); ++i) add_times((*coefficients)[i], row.units[size_t(survivors[i])].data(), sum.data(), bytes);
      EXPECT_EQ(sum, row.units[size_t(order.back())]) << k << "+" << m << ", " << bytes << " bytes";
    }
  }
  EXPECT_EQ(Code::make(4, 2)->coefficients(std::vector<int>{0, 1, 2}, 5).status().kind(), Kind::lost);
}

TEST(Code, one_code_serves_many_threads) {
  auto code = Code::make(6, 3);
  const Row row(*code, 4096, 8);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<int> order(9);
      std::iota(order.begin(), order.end(), 0);
      for (int i = 0; i < 500; ++i) {
        std::shuffle(order.begin(), order.end(), random);
        expect_reconstructed(*code, row, {order.begin(), order.begin() + 6}, {order.begin() + 6, order.end()});
      }
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace holdfast::coding
