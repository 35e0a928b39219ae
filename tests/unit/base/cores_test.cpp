// Cores are dealt out whole, and neighbours stay together.
#include <gtest/gtest.h>

#include "base/cores.hpp"

namespace holdfast {
namespace {

// As Linux numbers them: first one processor of each core, then the second ones.
std::vector<Processor> machine(int packages, int cores, int threads) {
  std::vector<Processor> all;
  for (int thread = 0; thread < threads; ++thread)
    for (int package = 0; package < packages; ++package)
      for (int core = 0; core < cores; ++core) all.push_back({int(all.size()), package, core});
  return all;
}

TEST(Cores, are_dealt_whole_and_by_package) {
  const auto dealt = deal_cores(machine(2, 4, 2), 2, 4);
  ASSERT_TRUE(dealt);
  EXPECT_EQ(text_of_processors((*dealt)[0]), "0-3,8-11");
  EXPECT_EQ(text_of_processors((*dealt)[1]), "4-7,12-15");
}

TEST(Cores, are_as_many_for_each) {
  const auto dealt = deal_cores(machine(1, 8, 1), 3, 2);
  ASSERT_TRUE(dealt);
  EXPECT_EQ(text_of_processors((*dealt)[0]), "0-1");
  EXPECT_EQ(text_of_processors((*dealt)[2]), "4-5");
}

TEST(Cores, are_not_dealt_where_they_do_not_suffice) {
  EXPECT_FALSE(deal_cores(machine(1, 4, 2), 2, 3)) << "threads of a core are no cores";
  EXPECT_FALSE(deal_cores(machine(1, 1, 2), 2, 1));
  EXPECT_FALSE(deal_cores({}, 2, 1));
}

TEST(Cores, of_this_process_are_there) {
  EXPECT_FALSE(processors_here().empty());
  EXPECT_EQ(text_of_processors({0, 2, 3, 4, 9}), "0,2-4,9");
}

}  // namespace
}  // namespace holdfast
