#include "base/find_number.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(FindNumber, finds_one_that_stands_by_itself) {
  EXPECT_EQ(find_number("log.47", "47"), 4u);
  EXPECT_EQ(find_number("47", "47"), 0u);
  EXPECT_EQ(find_number("run.47/out", "47"), 4u);
  EXPECT_EQ(find_number("147.470/x47y", "47"), 9u);
  EXPECT_EQ(find_number("147.470", "47"), std::string_view::npos) << "a part of a larger one";
  EXPECT_EQ(find_number("a47.b47", "47", 3), 5u);
}

}  // namespace
}  // namespace holdfast
