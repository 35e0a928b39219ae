// What an attempt has begun with was whole. Nodes that keep a file of it do not answer while a program looks for it: it was told that there is no such file, and began from
// the start without a word.
#include <gtest/gtest.h>

#include "catalog/pool.hpp"
#include "checkpoint/protect.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::checkpoint {
namespace {

using Front = frontend::posix::Checkpoints;

class BegunWith : public testing::Test {
 protected:
  BegunWith() : site_(1), in_site_(site_) {
    for (const char* name : {"n1", "n2", "n3", "n4", "n5"}) site_.add_node_disk(name), settings_.local.push_back(site_.disks.back().address);
    settings_.protect = "mirror:2";
    settings_.checkpoint = {"/data/ck.{step}.{rank}"};
    EXPECT_TRUE(catalog::open_pool(settings_).ok());
    {
      const catalog::Descriptor file(site_.openat(AT_FDCWD, "/data/plain", O_WRONLY | O_CREAT, 0600));
      EXPECT_EQ(site_.write(file.get(), "some bytes", 10), 10);
    }
    write(1, 1, "n1:/n1", 0), write(1, 1, "n3:/n3", 1);  // on n1 and n2, and on n3 and n4
  }
  void write(uint32_t attempt, uint64_t step, const std::string& node, uint32_t rank) {
    const layout::Version version{"00000000000000ab", attempt, step, rank, 2, 1, "/data/ck." + std::to_string(step) + "." + std::to_string(rank), 1};
    ASSERT_TRUE(protect("/data/plain", version, node, settings_).ok());
  }
  Result<Front::Sight> look(const std::string& path, const std::string& node) {
    const checkpoint::Run run{"00000000000000ab", 2, Run::From{1, 1}, false, settings_.local};
    const auto front = Front::make(settings_, *Patterns::parse(settings_.checkpoint), run, {1, 2, node});
    return front->look(*front->match(path));
  }

  sim::Site site_;
  const catalog::ReplacedEnvironment in_site_;
  Settings settings_;
};

TEST_F(BegunWith, of_which_no_node_shows_a_file_is_an_error) {
  EXPECT_EQ(look("/data/ck.1.1", "n5:/n5")->what, Front::Sight::local);
  site_.change_disk(2, nullptr), site_.change_disk(3, nullptr);
  ASSERT_TRUE(catalog::open_pool(settings_).ok());
  const auto sight = look("/data/ck.1.1", "n2:/n2");
  ASSERT_FALSE(sight.ok());
  EXPECT_EQ(sight.status().to_errno(), EIO);
  EXPECT_NE(sight.status().sentence().find("checkpoint 1 was whole when this attempt began with it"), std::string::npos) << sight.status().sentence();
  EXPECT_EQ(look("/data/ck.1.0", "n2:/n2")->what, Front::Sight::local) << "the other file is there";
  EXPECT_EQ(look("/data/ck.2.1", "n2:/n2")->what, Front::Sight::absent) << "a step that nobody has written";
}

TEST_F(BegunWith, that_gave_way_to_newer_ones_is_absent) {
  write(2, 2, "n1:/n1", 0), write(2, 2, "n5:/n5", 1);
  site_.change_disk(2, nullptr), site_.change_disk(3, nullptr);
  ASSERT_TRUE(catalog::open_pool(settings_).ok());
  EXPECT_EQ(look("/data/ck.1.1", "n2:/n2")->what, Front::Sight::absent);
}

}  // namespace
}  // namespace holdfast::checkpoint
