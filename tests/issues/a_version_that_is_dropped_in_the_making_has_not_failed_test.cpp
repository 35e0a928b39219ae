// A protector has two threads, and the second one protects what is newer. Once that was whole the older version was dropped as soon as its first manifest was seen: the first
// thread could not put the others, and said that the file is not protected.
#include <gtest/gtest.h>

#include <fcntl.h>

#include "base/node_path.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/protector.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/pool_on_site.hpp"

namespace holdfast::checkpoint {
namespace {

struct DroppedInTheMaking : sim::PoolOnSite, testing::Test {
  DroppedInTheMaking() {
    settings.protect = "rs:2+1";
    settings.checkpoint = {"/data/ck.{step}.{rank}"};
    job = {.id = "00000000000000ab", .attempt = 1, .from = {}, .nodes = settings.local};
    front = frontend::posix::Checkpoints::make(settings, *Patterns::parse(settings.checkpoint), job, {0, 1, settings.local[0]});
    protector.emplace(settings, job, settings.local[0], [this](const std::string& sentence) { said.push_back(sentence); });
    EXPECT_TRUE(protector->begin().ok());
  }
  void write() {
    Status status;
    const int fd = front->open_to_write(*front->match("/data/ck.5.0"), O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
    ASSERT_GE(fd, 0) << status.sentence();
    EXPECT_EQ(site.pwrite(fd, "whole", 5, 0), 5);
    site.close(fd);
    front->closed(fd);
  }
  void drop_when_seen() {
    site.gate->way = [this](int) {
      if (is_looking || drops > 0) return Status();
      is_looking = true;
      const auto found = catalog::VersionList().look(settings.local, 1000);
      for (const catalog::FoundVersion& one : *found) {
        ++drops;
        EXPECT_TRUE(drop({&one.manifest, 1}, job.attempt, settings).ok());
      }
      is_looking = false;
      return Status();
    };
  }
  size_t in(State state) { return LocalFiles(parse_node_path(settings.local[0]).path, job.id, job.attempt).list(state).size(); }

  checkpoint::Run job;
  std::unique_ptr<frontend::posix::Checkpoints> front;
  std::optional<Protector> protector;
  std::vector<std::string> said;
  bool is_looking = false;
  int drops = 0;
};

TEST_F(DroppedInTheMaking, is_remembered_as_dropped) {
  write();
  drop_when_seen();
  protector->work();
  site.gate->way = nullptr;
  EXPECT_EQ(drops, 1);
  EXPECT_TRUE(said.empty()) << said.front();
  EXPECT_EQ(in(State::dropped), 1u);
  for (const State state : {State::closed, State::protecting, State::failed, State::kept}) EXPECT_EQ(in(state), 0u) << state_name(state);
}

}  // namespace
}  // namespace holdfast::checkpoint
