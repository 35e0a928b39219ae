// A protector that was started anew moved what the one before had in hands back to "closed". A program that looked for its file at that moment, state after state
// in their order, did not find it. Found by the simulator, seed 2084.
#include <gtest/gtest.h>

#include "catalog/pool.hpp"
#include "checkpoint/protector.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::checkpoint {
namespace {

using Front = frontend::posix::Checkpoints;

class ProtectorAnew : public ::testing::Test {
 protected:
  ProtectorAnew() {
    for (const char* name : {"n1", "n2"}) site.add_node_disk(name), settings.local.push_back(site.disks.back().address);
    settings.protect = "mirror:2";
    settings.checkpoint = {"/data/ck.{step}.{rank}"};
    EXPECT_TRUE(catalog::open_pool(settings).ok());
    run = {.id = "00000000000000ab", .attempt = 1, .from = {}, .nodes = settings.local};
    front = Front::make(settings, *Patterns::parse(settings.checkpoint), run, {0, 1, settings.local[0]});
  }
  Protector begin() {
    Protector protector(settings, run, settings.local[0], [this](const std::string& sentence) { said += sentence; });
    EXPECT_TRUE(protector.begin().ok());
    return protector;
  }
  void write(const std::string& path) {
    Status status;
    const int fd = front->open_to_write(*front->match(path), O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
    ASSERT_GE(fd, 0) << status.sentence();
    site.close(fd);
    front->closed(fd);
  }
  size_t count(State state) const { return LocalFiles("/n1", run.id, run.attempt).list(state).size(); }

  sim::Site site{1};
  catalog::ReplacedEnvironment in_site{site};
  Settings settings;
  checkpoint::Run run;
  std::string said;
  std::unique_ptr<Front> front;
};

TEST_F(ProtectorAnew, moves_nothing_back) {
  write("/data/ck.1.0");
  const LocalFiles files("/n1", run.id, run.attempt);
  ASSERT_TRUE(files.move(files.list(State::closed).at(0), State::closed, State::protecting).ok());
  Protector second = begin();
  EXPECT_EQ(count(State::closed), 0u);
  EXPECT_EQ(count(State::protecting), 1u);
  EXPECT_TRUE(second.finish_closed());
  EXPECT_EQ(count(State::kept), 1u);
}

}  // namespace
}  // namespace holdfast::checkpoint
