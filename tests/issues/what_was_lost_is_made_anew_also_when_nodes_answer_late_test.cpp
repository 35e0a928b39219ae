// An attempt began with a checkpoint that lacked parts. When a protector first looked for them one more node did not answer, on a busy machine: nothing could be
// read, and it never looked again. The checkpoint stayed as it was, one loss from being lost, until the next attempt.
#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/pool.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/protector.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::checkpoint {
namespace {

// Of a job with one rank on the first of three nodes; what it wrote is there alone, for the second one has an empty disk.
class LostParts : public ::testing::Test {
 protected:
  LostParts() {
    for (const char* name : {"n1", "n2", "n3"}) site.add_node_disk(name), settings.local.push_back(site.disks.back().address);
    settings.protect = "mirror:2";
    EXPECT_TRUE(catalog::open_pool(settings).ok());
    EXPECT_TRUE(catalog::replace_file("/data/source", "/data/source.new", "content", 0600, false).ok());
    EXPECT_TRUE(protect("/data/source", {id, 1, 10, 0, 1, 1, "/data/ck.10.0", 1, 1}, settings.local[0], settings));
    site.change_disk(1, nullptr);
    EXPECT_TRUE(catalog::open_pool(settings).ok());
    run = {.id = id, .attempt = 2, .from = checkpoint::Run::From{1, 10}, .nodes = settings.local};
  }
  void answers(bool does) {
    if (does) site.gate->heal(sim::Site::gate_number(0));
    else site.gate->fail(sim::Site::gate_number(0), Kind::timed_out);
  }
  bool is_complete() {
    const auto found = *catalog::VersionList().look(settings.local, settings.deadline_ms);
    return std::any_of(found.begin(), found.end(), [](const auto& one) { return one.is_complete(); });
  }

  const std::string id = "00000000000000ab";
  sim::Site site{1};
  catalog::ReplacedEnvironment in_site{site};
  Settings settings;
  checkpoint::Run run;
};

TEST_F(LostParts, are_made_anew_also_when_the_node_that_has_them_answers_late) {
  Protector protector(settings, run, settings.local[0], [](const std::string& sentence) { ADD_FAILURE() << sentence; });
  ASSERT_TRUE(protector.begin().ok());
  answers(false);
  protector.work();
  answers(true);
  EXPECT_FALSE(is_complete());
  for (int look = 0; look < 5; ++look) protector.work();
  EXPECT_TRUE(is_complete());
}

// Each file had waited for the protector's next look, a fifth of a second.
TEST_F(LostParts, that_are_small_and_many_wait_for_nothing_between_them) {
  EXPECT_TRUE(protect("/data/source", {id, 1, 10, 0, 1, 2, "/data/ck.10.0", 1, 1}, settings.local[0], settings));
  site.change_disk(1, nullptr);
  EXPECT_TRUE(catalog::open_pool(settings).ok());
  Protector protector(settings, run, settings.local[0], [](const std::string& sentence) { ADD_FAILURE() << sentence; });
  ASSERT_TRUE(protector.begin().ok());
  EXPECT_TRUE(protector.work());
  EXPECT_TRUE(protector.work()) << "there was another one";
  EXPECT_FALSE(protector.work());
}

}  // namespace
}  // namespace holdfast::checkpoint
