// The members' manifests were read first and the sidecar's after them: a commit between the two looked as if the newest epoch had been
// written to targets that do not answer, and a job's sync failed while a repair committed.
#include <gtest/gtest.h>

#include "engine/manifest_store.hpp"
#include "sim/world.hpp"

namespace holdfast {
namespace {

// Another process commits at the moment in which this one asks for the sidecar.
class CommittedMeanwhile final : public catalog::PathKeeper {
 public:
  CommittedMeanwhile(std::shared_ptr<catalog::PathKeeper> inner, std::function<void()> commit)
      : inner_(std::move(inner)), commit_(std::move(commit)) {}
  Result<layout::Manifest> sidecar() override {
    if (commit_) std::exchange(commit_, nullptr)();
    return inner_->sidecar();
  }
  Status publish(layout::Manifest& manifest, bool durable) override { return inner_->publish(manifest, durable); }
  Result<std::unique_ptr<target::Lock>> try_lock(bool make) override { return inner_->try_lock(make); }

 private:
  std::shared_ptr<catalog::PathKeeper> inner_;
  std::function<void()> commit_;
};

TEST(Issue, a_manifest_replaced_while_it_is_read_is_not_refused) {
  sim::World world("rs:2+1");
  auto alone = exchange::make_solo();
  auto file = world.open(*alone, true);
  ASSERT_TRUE(file.ok());
  const Bytes content(10000, std::byte(7));
  const Extent extent{0, content.size()};
  ASSERT_TRUE((*file)->write({&extent, 1}, content).ok());
  ASSERT_TRUE((*file)->close().ok());

  auto located = world.locate();
  bool committed = false;
  located.path_keeper = std::make_shared<CommittedMeanwhile>(located.path_keeper, [&] {
    auto elsewhere = world.locate();
    committed = engine::repair(elsewhere, world.settings, nullptr).ok();
  });
  engine::Members members(located);
  auto reading = engine::read_manifest(members, located, world.settings);
  EXPECT_TRUE(committed);
  EXPECT_TRUE(reading.ok()) << reading.status().sentence();
}

}  // namespace
}  // namespace holdfast
