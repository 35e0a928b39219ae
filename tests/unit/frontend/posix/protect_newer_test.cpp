// A newer checkpoint does not wait for an older one: a second thread protects it meanwhile, and no more than that.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>
#include <utility>

#include "catalog/pool.hpp"
#include "catalog/versions.hpp"
#include "checkpoint/protector.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "layout/pack.hpp"
#include "unit/catalog/scene.hpp"

namespace holdfast::frontend::posix {
namespace {

using checkpoint::LocalFiles;
using checkpoint::Protector;
using checkpoint::State;

// The two ranks of a job, both on the first of four nodes.
class ProtectNewer : public catalog::Scene {
 protected:
  ProtectNewer() {
    targets(4, "rs:2+2");
    settings.local.swap(settings.targets);
    EXPECT_TRUE(catalog::open_pool(settings));
    settings.checkpoint = {user("ck.{step}.{rank}")};
    run_ = {.id = "0123456789abcdef", .attempt = 1, .from = {}, .nodes = settings.local};
    for (uint32_t rank = 0; rank < 2; ++rank)
      ranks_.push_back(Checkpoints::make(settings, *checkpoint::Patterns::parse(settings.checkpoint, {}), run_, {rank, 2, settings.local[0]}));
  }
  void write_checkpoint(int step, uint32_t rank) {
    Checkpoints& all = *ranks_[rank];
    Status status;
    const int fd =
        all.open_to_write(*all.match(user("ck." + std::to_string(step) + "." + std::to_string(rank))), O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
    ASSERT_GE(fd, 0) << status.sentence();
    EXPECT_EQ(::write(fd, "content", 7), 7);
    ::close(fd);
    all.closed(fd);
  }
  size_t count(State state) const { return LocalFiles(settings.local[0], run_.id, run_.attempt).list(state).size(); }

  checkpoint::Run run_;
  std::vector<std::unique_ptr<Checkpoints>> ranks_;
};

// With a node lost there is something to say once, while the first thread has the file in hands still.
TEST_F(ProtectNewer, while_an_older_one_is_in_hands) {
  settings.pack_below_bytes = 0;  // each file by itself
  std::filesystem::remove_all(settings.local[3]);
  Protector* protector = nullptr;
  int times = 0;
  Protector first(settings, run_, settings.local[0], [&](const std::string& said) {
    EXPECT_NE(said.find("1 of its targets is lost"), std::string::npos) << said;
    if (++times > 1) return;
    EXPECT_FALSE(protector->protect_newer()) << "the other rank's file of the same checkpoint waits for its turn";
    write_checkpoint(2, 0);
    write_checkpoint(3, 0);
    std::thread([&] { EXPECT_TRUE(protector->protect_newer()); }).join();
    const auto kept = LocalFiles(settings.local[0], run_.id, run_.attempt).list(State::kept);
    ASSERT_EQ(kept.size(), 1u);
    EXPECT_EQ(kept[0].step, 3u) << "the newest comes first";
    EXPECT_EQ(count(State::protecting), 1u);
  });
  protector = &first;
  ASSERT_TRUE(first.begin().ok());
  write_checkpoint(1, 0);
  write_checkpoint(1, 1);
  first.work();
  EXPECT_FALSE(first.protect_newer()) << "nothing is in hands";
  first.work();
  EXPECT_EQ(count(State::kept), 4u);
  EXPECT_TRUE(first.end());
}

// Small ones of it go together, as the first thread has them: one commit.
TEST_F(ProtectNewer, small_files_of_it_together) {
  std::filesystem::remove_all(settings.local[3]);
  Protector* protector = nullptr;
  bool is_first = true;
  Protector first(settings, run_, settings.local[0], [&](const std::string&) {
    if (!std::exchange(is_first, false)) return;
    write_checkpoint(2, 0);
    write_checkpoint(3, 0);
    write_checkpoint(3, 1);
    std::thread([&] { EXPECT_TRUE(protector->protect_newer()); }).join();
    EXPECT_EQ(count(State::kept), 2u) << "both files of the newest";
  });
  protector = &first;
  ASSERT_TRUE(first.begin().ok());
  write_checkpoint(1, 0);
  while (count(State::kept) < 4 && !HasFailure()) first.work();
  const auto found = catalog::VersionList().look(settings.local, settings.deadline_ms);
  ASSERT_TRUE(found.ok());
  std::set<std::string> packs;
  for (const catalog::FoundVersion& one : *found)
    if (one.manifest.version->step == 3) packs.insert(layout::stored(one.manifest).file_id);
  EXPECT_EQ(packs.size(), 1u) << "in one protected file";
  EXPECT_TRUE(first.end());
}

// It is the same file, which would be coded twice.
TEST_F(ProtectNewer, not_what_the_first_one_has_in_hands_under_another_name) {
  std::filesystem::remove_all(settings.local[3]);
  Protector* protector = nullptr;
  int times = 0;
  Protector first(settings, run_, settings.local[0], [&](const std::string&) {
    if (++times > 1) return;
    const auto seen = ranks_[0]->look(*ranks_[0]->match(user("ck.1.0")));
    ASSERT_TRUE(seen.ok());
    ASSERT_TRUE(ranks_[0]->take(seen->path, *ranks_[0]->match(user("ck.2.0"))).ok());
    std::thread([&] { EXPECT_FALSE(protector->protect_newer()); }).join();
    EXPECT_EQ(count(State::closed), 1u);
    write_checkpoint(3, 0);
    std::thread([&] { EXPECT_TRUE(protector->protect_newer()); }).join();
  });
  protector = &first;
  ASSERT_TRUE(first.begin().ok());
  write_checkpoint(1, 0);
  while (count(State::kept) < 3 && !HasFailure()) first.work();
  EXPECT_TRUE(first.end());
}

// The end waits for what the second one has in hands: it may be the last file of a checkpoint.
TEST_F(ProtectNewer, is_awaited_at_the_end) {
  settings.protect = "mirror:4";
  std::filesystem::remove_all(settings.local[3]);
  std::atomic<int> said{0};
  std::atomic<bool> goes_on{false};
  std::thread second;
  Protector* protector = nullptr;
  Protector first(settings, run_, settings.local[0], [&](const std::string&) {
    if (++said == 2) {
      while (!goes_on) ::usleep(1000);
      return;
    }
    std::filesystem::remove_all(settings.local[2]);  // one more: that is said as well
    write_checkpoint(2, 0);
    second = std::thread([&] { EXPECT_TRUE(protector->protect_newer()); });
    while (said < 2 && !HasFailure()) ::usleep(1000);
  });
  protector = &first;
  ASSERT_TRUE(first.begin().ok());
  write_checkpoint(1, 0);
  first.work();
  EXPECT_EQ(count(State::closed), 0u);
  EXPECT_FALSE(first.finish_closed());
  EXPECT_TRUE(first.is_second_at_work());
  goes_on = true;
  second.join();
  EXPECT_TRUE(first.finish_closed());
  EXPECT_FALSE(first.is_second_at_work());
  EXPECT_EQ(count(State::kept), 2u);
}

TEST_F(ProtectNewer, each_file_once_whoever_takes_it) {
  std::atomic<bool> is_over{false};
  Protector protector(settings, run_, settings.local[0], [](const std::string& said) { ADD_FAILURE() << said; });
  ASSERT_TRUE(protector.begin().ok());
  std::thread first([&] {
    while (!is_over) protector.work();
  });
  std::thread second([&] {
    while (!is_over) protector.protect_newer();
  });
  constexpr int steps = 20;
  for (int step = 1; step <= steps; ++step) write_checkpoint(step, uint32_t(step % 2));
  while (count(State::kept) < steps && !HasFailure()) ::usleep(1000);
  is_over = true;
  first.join();
  second.join();
  EXPECT_TRUE(protector.finish_closed());
  EXPECT_TRUE(protector.end());
  EXPECT_EQ(count(State::kept), size_t(steps));
}

}  // namespace
}  // namespace holdfast::frontend::posix
