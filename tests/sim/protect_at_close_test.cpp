// `--protect-at close` where nobody protects: how long a program waits is told by the site's clock.
#include "checkpoint/local.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/pool_on_site.hpp"
#include "sim/schedule.hpp"

namespace holdfast::sim {
namespace {

using checkpoint::LocalFiles;
using checkpoint::LocalName;
using checkpoint::State;

class ClosesUnprotected : public ::testing::Test, protected PoolOnSite {
 protected:
  ClosesUnprotected() {
    settings.checkpoint = {"/data/ck.{step}.{rank}"};
    settings.protect_at_close = true;
    settings.lock_patience_ms = 5000;
    const checkpoint::Run run{.id = "00000000000000ab", .attempt = 1, .from = {}, .nodes = settings.local};
    front_ = frontend::posix::Checkpoints::make(settings, *checkpoint::Patterns::parse(settings.checkpoint), run, {0, 1, settings.local[0]});
    files_.emplace("/n1", run.id, run.attempt);
  }
  static std::string path_of(uint64_t step) { return "/data/ck." + std::to_string(step) + ".0"; }
  // What is to be waited for.
  std::string write(uint64_t step) {
    Status status;
    const int fd = front_->open_to_write(*front_->match(path_of(step)), O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
    EXPECT_GE(fd, 0) << status.sentence();
    site.close(fd);
    return front_->closed(fd);
  }
  // How long the close takes, which ends in vain.
  std::chrono::milliseconds close_in_vain(uint64_t step) {
    const std::string path = path_of(step);
    const std::string closed = write(step);
    const auto before = site.now();
    const Status late = front_->protected_at_close(closed);
    EXPECT_EQ(late.kind(), Kind::timed_out);
    EXPECT_TRUE(late.sentence().starts_with(path + ": not protected yet, and not waited for any longer")) << late.sentence();
    return std::chrono::duration_cast<std::chrono::milliseconds>(site.now() - before);
  }
  // As the protector does in the end.
  void protect(uint64_t step) {
    for (const LocalName& name : files_->list(State::closed))
      if (name.step == step) {
        EXPECT_TRUE(files_->move(name, State::closed, State::kept).ok());
      }
  }
  std::unique_ptr<frontend::posix::Checkpoints> front_;
  std::optional<LocalFiles> files_;
};

TEST_F(ClosesUnprotected, wait_as_long_as_their_patience_and_then_no_more_until_that_one_is_protected) {
  EXPECT_GE(close_in_vain(1).count(), 5000);
  EXPECT_EQ(close_in_vain(2).count(), 0);
  protect(2);
  EXPECT_EQ(close_in_vain(3).count(), 0) << "the first one is not protected yet";
  protect(1);
  EXPECT_GE(close_in_vain(4).count(), 5000) << "it is protected again";
}

// The version of before may be on its way still, closed by a process that waited in vain, or for nothing. Found by the schedules of checkpoints, seed 1029.
TEST_F(ClosesUnprotected, wait_for_their_own_version_and_not_for_one_before_alone) {
  Schedule schedule(1, 0);
  Status late;
  schedule.add([&] {
    (void)write(1);
    late = front_->protected_at_close(write(1));
  });
  schedule.add([&] {
    for (int turn = 0; turn < 1000 && files_->list(State::closed).size() < 2; ++turn) Schedule::yield(true);
    const auto names = files_->list(State::closed);
    ASSERT_EQ(names.size(), 2u);
    ASSERT_LT(names[0].number, names[1].number);
    EXPECT_TRUE(files_->move(names[0], State::closed, State::kept).ok());
  });
  schedule.run();
  EXPECT_EQ(late.kind(), Kind::timed_out) << "it is not protected";
}

}  // namespace
}  // namespace holdfast::sim
