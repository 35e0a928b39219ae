// All that an attempt had written lay on nodes that were lost with it: the next `run` gave its number to another attempt. When the nodes came back both had
// versions of the same steps under one number, and the checkpoint that was whole was not found any more.
#include <gtest/gtest.h>

#include "catalog/pool.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/local.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::checkpoint {
namespace {

TEST(NextAttempt, has_a_number_that_no_directory_has) {
  sim::Site site(1);
  const catalog::ReplacedEnvironment in_site(site);
  Settings settings;
  for (const char* name : {"n1", "n2", "n3"}) site.add_node_disk(name), settings.local.push_back(site.disks.back().address);
  settings.protect = "mirror:2";
  ASSERT_TRUE(catalog::open_pool(settings).ok());
  const std::string run_id = "00000000000000ab";
  const auto next = [&] { return next_attempt(*Surveyor(settings.local, settings.deadline_ms).look(run_id), run_id); };
  EXPECT_EQ(next(), 1u);
  // As protectors make them, before anything is written.
  for (const char* node : {"/n1", "/n2"}) ASSERT_TRUE(LocalFiles(node, run_id, 1).make().ok());
  EXPECT_EQ(next(), 2u);
  site.gate->fail(sim::Site::gate_number(0), Kind::timed_out);
  EXPECT_EQ(next(), 2u);
}

}  // namespace
}  // namespace holdfast::checkpoint
