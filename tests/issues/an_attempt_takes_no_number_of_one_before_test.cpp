// All that an attempt had written lay on nodes that were lost with it: the next `run` gave its number to another attempt. When the nodes came back both had
// versions of the same steps under one number, and the checkpoint that was whole was not found any more.
#include <gtest/gtest.h>

#include "checkpoint/attempt.hpp"
#include "checkpoint/local.hpp"
#include "sim/pool_on_site.hpp"

namespace holdfast::checkpoint {
namespace {

TEST(NextAttempt, has_a_number_that_no_directory_has) {
  sim::PoolOnSite pool;
  sim::Site& site = pool.site;
  Settings& settings = pool.settings;
  const std::string run_id = "00000000000000ab";
  const auto next = [&] { return next_attempt(*Surveyor(settings.local, settings.deadline_ms).look(run_id), run_id, 0, 1).number; };
  EXPECT_EQ(next(), 1u);
  // As protectors make them, before anything is written.
  for (const char* node : {"/n1", "/n2"}) ASSERT_TRUE(LocalFiles(node, run_id, 1).make().ok());
  EXPECT_EQ(next(), 2u);
  site.gate->fail(sim::Site::gate_number(0), Kind::timed_out);
  EXPECT_EQ(next(), 2u);
}

}  // namespace
}  // namespace holdfast::checkpoint
