// `--protect-at close`: when a close has returned its file is protected, or it is known why not.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "catalog/pool.hpp"
#include "checkpoint/protector.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "unit/catalog/scene.hpp"

namespace holdfast::frontend::posix {
namespace {

using checkpoint::LocalFiles;
using checkpoint::LocalName;
using checkpoint::State;

// The one rank of a job, on the first of three nodes.
class ProtectAtClose : public catalog::Scene {
 protected:
  ProtectAtClose() {
    targets(3, "rs:2+1");
    settings.local.swap(settings.targets);
    EXPECT_TRUE(catalog::open_pool(settings));
    settings.checkpoint = {user("ck.{step}.{rank}")};
    settings.protect_at_close = true;
    settings.lock_patience_ms = 30'000;
    run_ = {.id = "0123456789abcdef", .attempt = 1, .from = {}, .simulated = true, .nodes = settings.local};
  }
  ~ProtectAtClose() override { stop_protecting(); }

  Checkpoints& all() {
    if (!all_) all_ = Checkpoints::make(settings, *checkpoint::Patterns::parse(settings.checkpoint, {}), run_, {0, 1, settings.local[0]});
    return *all_;
  }
  // As protector_main.cpp does.
  void protect() {
    thread_ = std::thread([this] {
      checkpoint::Protector protector(settings, run_, settings.local[0], [this](const std::string& sentence) { said_ = sentence; });
      if (!protector.begin()) return;
      for (; !over_; ::usleep(1000)) protector.work();
    });
  }
  void stop_protecting() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
    over_ = false;
  }
  int open(const std::string& name, int flags = O_WRONLY | O_CREAT | O_TRUNC) {
    Status status;
    const int fd = all().open_to_write(*all().match(user(name)), flags, 0644, status);
    EXPECT_GE(fd, 0) << status.sentence();
    EXPECT_EQ(::write(fd, "content", 7), 7);
    return fd;
  }
  Status close(int fd) {
    ::close(fd);
    return all().protected_at_close(all().closed(fd));
  }
  bool has(State state, const std::string& name) const {
    const auto names = LocalFiles(settings.local[0], run_.id, run_.attempt).list(state);
    return std::any_of(names.begin(), names.end(), [&](const LocalName& one) { return one.file == user(name); });
  }

  checkpoint::Run run_;
  std::unique_ptr<Checkpoints> all_;
  std::thread thread_;
  std::atomic<bool> over_{false};
  std::string said_;  // by the protector
};

TEST_F(ProtectAtClose, a_close_returns_when_its_file_is_protected) {
  protect();
  for (const std::string name : {"ck.1.0", "ck.2.0", "ck.1.0"}) {
    EXPECT_TRUE(close(open(name)).ok());
    EXPECT_TRUE(has(State::kept, name));
    EXPECT_FALSE(has(State::closed, name) || has(State::protecting, name));
  }
}

TEST_F(ProtectAtClose, so_does_a_rename_to_its_name) {
  protect();
  write(user("plain"), "content");
  ASSERT_TRUE(all().take(user("plain"), *all().match(user("ck.1.0"))).ok());
  EXPECT_TRUE(all().protected_at_close(user("ck.1.0")).ok());
  EXPECT_TRUE(has(State::kept, "ck.1.0"));
}

TEST_F(ProtectAtClose, in_the_background_nothing_is_waited_for) {
  settings.protect_at_close = false;
  EXPECT_TRUE(close(open("ck.1.0")).ok());
  EXPECT_TRUE(has(State::closed, "ck.1.0"));
}

TEST_F(ProtectAtClose, what_cannot_be_protected_is_told_by_the_protector_and_not_waited_for) {
  for (const int node : {1, 2}) std::filesystem::remove_all(settings.local[size_t(node)]);
  protect();
  EXPECT_TRUE(close(open("ck.1.0")).ok());
  EXPECT_TRUE(has(State::failed, "ck.1.0"));
  stop_protecting();
  EXPECT_NE(said_.find("is not protected: "), std::string::npos) << said_;
}

TEST_F(ProtectAtClose, a_close_that_is_not_the_last_waits_for_nothing) {
  protect();
  const int fd = open("ck.1.0"), other = ::dup(fd);  // of a child, say: nobody tells of it
  EXPECT_TRUE(catalog::says(close(fd), "ck.1.0: not protected yet, for a program still has it open to write"));
  EXPECT_TRUE(has(State::closed, "ck.1.0"));
  ::close(other);
  const int first = open("ck.2.0"), second = ::dup(first);
  all().duplicated(first, second);
  EXPECT_TRUE(close(first).ok());
  EXPECT_TRUE(has(State::writing, "ck.2.0"));
  EXPECT_TRUE(close(second).ok());
  EXPECT_TRUE(has(State::kept, "ck.2.0"));
}

}  // namespace
}  // namespace holdfast::frontend::posix
