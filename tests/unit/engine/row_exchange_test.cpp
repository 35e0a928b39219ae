#include "engine/row_exchange.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace holdfast::engine {
namespace {

layout::Geometry geometry() {
  layout::Geometry g;
  g.scheme = {.k = 2, .m = 1, .mirror = false};
  g.members = 3;
  g.unit_bytes = layout::min_unit_bytes;
  return g;
}

// Each of `count` ranks brings every count-th block of an eighth of a row; returns which rank folded each row.
std::vector<std::set<int>> fold_on(int count, int aggregators, uint64_t rows, uint64_t& bytes) {
  const layout::Geometry g = geometry();
  const uint64_t block = g.row_bytes() / 8, blocks = rows * 8;
  auto exchanges = exchange::make_threads(count);
  std::vector<std::set<int>> owners(rows);
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<Bytes> data;
      std::vector<OutExtent> mine;
      for (uint64_t b = uint64_t(rank); b < blocks; b += uint64_t(count)) {
        data.emplace_back(block, std::byte(b % 251));
        mine.push_back({b * block, block, data.back().data(), 1});
      }
      const Status status =
          exchange_rows(*exchanges[size_t(rank)], aggregators, g, std::move(mine), [&](uint64_t row, std::span<const OutExtent> pieces) {
            std::lock_guard guard(mutex);
            owners[row].insert(rank);
            for (const OutExtent& piece : pieces) {
              bytes += piece.length;
              for (uint64_t i = 0; i < piece.length; ++i) EXPECT_EQ(piece.from[i], std::byte((piece.offset + i) / block % 251));
            }
            return Status();
          });
      EXPECT_TRUE(status.ok());
    });
  }
  for (auto& thread : threads) thread.join();
  return owners;
}

TEST(RowExchange, AsManyRanksFoldRowsAsWereAskedForAndAllOfThemOtherwise) {
  constexpr uint64_t rows = 24;
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (int aggregators = 0; aggregators <= 7; ++aggregators) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(aggregators) + " aggregators");
      uint64_t bytes = 0;
      std::set<int> used;
      for (const std::set<int>& owners : fold_on(ranks, aggregators, rows, bytes)) {
        EXPECT_EQ(owners.size(), 1u) << "a row meets at one rank";
        used.insert(owners.begin(), owners.end());
      }
      EXPECT_EQ(bytes, rows * geometry().row_bytes());
      EXPECT_EQ(int(used.size()), aggregators == 0 ? ranks : std::min(aggregators, ranks));
    }
  }
}

// The first extent goes on in later windows of rows; the second lies within the first one's window.
TEST(RowExchange, ExtentsBesideOneThatGoesOnAllArrive) {
  const layout::Geometry g = geometry();
  const Bytes data(16 << 20, std::byte(7));
  std::vector<OutExtent> mine{{0, data.size(), data.data(), 1}, {g.row_bytes(), 100, data.data(), 2}};
  uint64_t bytes = 0;
  auto solo = exchange::make_solo();
  const Status status = exchange_rows(*solo, 0, g, std::move(mine), [&](uint64_t row, std::span<const OutExtent> pieces) {
    for (const OutExtent& piece : pieces) {
      bytes += piece.length;
      EXPECT_EQ(piece.offset / g.row_bytes(), row);
    }
    return Status();
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(bytes, data.size() + 100);
}

TEST(RowExchange, AggregatorsAreSpreadOverTheRanks) {
  std::vector<int> owners;
  for (uint64_t row = 0; row < 4; ++row) owners.push_back(layout::owner_of_row(row, 10, 4));
  EXPECT_EQ(owners, (std::vector<int>{0, 2, 5, 7}));
}

}  // namespace
}  // namespace holdfast::engine
