// Small files of one node and step share a protected file, and each is a version all the same.
#include "layout/pack.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/entry.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/protector.hpp"
#include "checkpoint/roll.hpp"
#include "checkpoint/survey.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/pool_on_site.hpp"

namespace holdfast::checkpoint {
namespace {

using Front = frontend::posix::Checkpoints;

// A job with all its ranks on the first of six nodes.
class Packs : public ::testing::Test, protected sim::PoolOnSite {
 protected:
  static constexpr uint32_t ranks = 5;
  Packs() : PoolOnSite(1, 6) {
    settings.protect = "rs:3+2";
    use("/data/ck.{step}.{rank}");
  }
  void use(const std::string& pattern) {
    settings.checkpoint = {pattern};
    run = {.id = "00000000000000ab", .attempt = 1, .from = {}, .nodes = settings.local};
    fronts.clear();
    for (uint32_t rank = 0; rank < ranks; ++rank)
      fronts.push_back(Front::make(settings, *Patterns::parse(settings.checkpoint), run, {rank, ranks, settings.local[0]}));
  }
  static std::string content_of(uint64_t step, uint32_t rank) { return std::string(rank * 5000 + rank % 2, char('a' + rank)) + std::to_string(step); }
  static std::string path_of(uint64_t step, uint32_t rank) { return "/data/ck." + std::to_string(step) + "." + std::to_string(rank); }

  void write(uint32_t rank, const std::string& path, const std::string& content) {
    Status status;
    const int fd = fronts[rank]->open_to_write(*fronts[rank]->match(path), O_WRONLY | O_CREAT | O_TRUNC, 0640, status);
    ASSERT_GE(fd, 0) << status.sentence();
    ASSERT_EQ(site.write(fd, content.data(), content.size()), ssize_t(content.size()));
    site.close(fd);
    fronts[rank]->closed(fd);
  }
  void write_step(uint64_t step) {
    for (uint32_t rank = 0; rank < ranks; ++rank) write(rank, path_of(step, rank), content_of(step, rank));
  }
  void protect_all() {
    Protector protector(settings, run, settings.local[0], [this](const std::string& sentence) { said += sentence + "\n"; });
    ASSERT_TRUE(protector.begin().ok());
    protector.work();
  }
  std::vector<catalog::FoundVersion> found() {
    auto all = catalog::VersionList().look(settings.local, settings.deadline_ms);
    return all ? std::move(*all) : std::vector<catalog::FoundVersion>();
  }
  // Directories on the nodes, each of them counted once.
  std::set<std::string> stored() {
    std::set<std::string> all;
    for (const auto& disk : site.disks)
      for (const auto& [name, node] : disk.root->entries)
        if (catalog::is_file_directory(name)) all.insert(name);
    return all;
  }
  void lose(int node) { site.gate->fail(sim::Site::gate_number(node), Kind::timed_out); }
  void heal(int node) { site.gate->heal(sim::Site::gate_number(node)); }
  Result<std::string> fetched(const layout::Manifest& manifest) {
    (void)catalog::unlink_file("/data/fetched");
    HF_TRY(fetch(manifest, "/data/fetched", settings));
    return catalog::read_small("/data/fetched", 1 << 20);
  }
  void expect_all_is_read(uint64_t step) {
    const auto all = found();
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const auto one = std::find_if(all.begin(), all.end(), [&](const auto& f) { return f.manifest.version->file == path_of(step, rank); });
      ASSERT_NE(one, all.end()) << rank;
      EXPECT_TRUE(one->readable());
      const auto content = fetched(one->manifest);
      ASSERT_TRUE(content.ok()) << content.status().sentence();
      EXPECT_EQ(*content, content_of(step, rank)) << rank;
      EXPECT_EQ(catalog::look("/data/fetched", false)->mode & 0777, 0640u);
    }
  }
  const Checkpoint* newest(std::vector<Checkpoint>& into) {
    into = checkpoints_of(protected_of(found()));
    return newest_whole(into, run.id);
  }
  uint64_t drop_old(size_t keep) {
    Surveyor surveyor(settings.local, settings.deadline_ms);
    const auto all = surveyor.look_at_versions();
    uint64_t files = 0;
    for (const auto& one : surveyor.stores_of(to_drop(*all, run.id, keep))) {
      EXPECT_TRUE(drop(one, run.attempt, settings).ok());
      files += one.size();
    }
    return files;
  }

  checkpoint::Run run;
  std::string said;
  std::vector<std::unique_ptr<Front>> fronts;
};

TEST_F(Packs, files_of_a_step_take_one_commit_and_are_versions_each) {
  write_step(10);
  protect_all();
  EXPECT_EQ(said, "");
  EXPECT_EQ(stored().size(), 1u);
  EXPECT_EQ(found().size(), ranks);
  std::set<std::string> ids;
  for (const catalog::FoundVersion& one : found()) {
    ids.insert(one.manifest.file_id);
    EXPECT_TRUE(one.manifest.file_id.ends_with(catalog::digits_of_node(settings.local[0])));
    EXPECT_TRUE(one.is_complete());
  }
  EXPECT_EQ(ids.size(), ranks);
  std::vector<Checkpoint> all;
  ASSERT_TRUE(newest(all));
  EXPECT_EQ(newest(all)->step, 10u);
  expect_all_is_read(10);
}

TEST_F(Packs, any_m_lost_nodes_take_nothing_away_and_one_more_takes_all) {
  write_step(10);
  protect_all();
  for (int a = 0; a < 6; ++a)
    for (int b = a + 1; b < 6; ++b) {
      lose(a), lose(b);
      expect_all_is_read(10);
      heal(a), heal(b);
    }
  for (int node = 0; node < 3; ++node) lose(node);
  for (const catalog::FoundVersion& one : found()) EXPECT_FALSE(one.readable());
  std::vector<Checkpoint> all;
  EXPECT_EQ(newest(all), nullptr);
}

TEST_F(Packs, with_nothing_below_which_they_begin_each_file_is_stored_alone) {
  settings.pack_below_bytes = 0;
  write_step(10);
  protect_all();
  EXPECT_EQ(stored().size(), ranks);
  expect_all_is_read(10);
}

TEST_F(Packs, larger_files_are_stored_alone) {
  settings.pack_below_bytes = 12'000;  // 0, 1 and 2 are smaller
  write_step(10);
  protect_all();
  EXPECT_EQ(stored().size(), ranks - 2);
  expect_all_is_read(10);
}

TEST_F(Packs, are_of_one_step) {
  write_step(10);
  write_step(20);
  protect_all();
  EXPECT_EQ(stored().size(), 2u);
  expect_all_is_read(10);
  expect_all_is_read(20);
}

TEST_F(Packs, go_with_their_checkpoint) {
  for (const uint64_t step : {10, 20}) write_step(step), protect_all();
  EXPECT_EQ(drop_old(1), ranks);
  EXPECT_EQ(stored().size(), 1u);
  EXPECT_EQ(drop_old(1), 0u);
  expect_all_is_read(20);
  EXPECT_EQ(LocalFiles("/n1", run.id, run.attempt).list(State::kept).size(), ranks);
  EXPECT_EQ(LocalFiles("/n1", run.id, run.attempt).list(State::dropped).size(), ranks) << "names are remembered";
}

TEST_F(Packs, stay_until_the_last_of_their_files_is_written_anew) {
  write_step(10);
  protect_all();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    write(rank, path_of(10, rank), content_of(77, rank));
    protect_all();
    EXPECT_EQ(drop_old(1), rank + 1 < ranks ? 0u : ranks);
    EXPECT_EQ(stored().size(), rank + 1 < ranks ? 2 + rank : ranks);
    const auto all = checkpoints_of(protected_of(found()));
    for (const auto& [place, file] : all.front().files) EXPECT_EQ(file.version.number, place.number <= rank ? 2u : 1u) << "the newest counts";
  }
}

TEST_F(Packs, have_the_newest_of_each_file_alone) {
  write_step(10);
  for (uint32_t rank = 0; rank < 2; ++rank) write(rank, path_of(10, rank), content_of(10, rank));
  protect_all();
  EXPECT_EQ(found().size(), ranks + 2);
  EXPECT_EQ(stored().size(), 3u);
  EXPECT_EQ(drop_old(1), 2u) << "those that were replaced";
  EXPECT_EQ(stored().size(), 1u);
  expect_all_is_read(10);
}

TEST_F(Packs, with_a_lost_node_are_made_anew_once_and_as_a_whole) {
  write_step(10);
  protect_all();
  const auto before = stored();
  site.change_disk(1, nullptr);
  ASSERT_TRUE(catalog::open_pool(settings).ok());
  run.attempt = 2, run.from = checkpoint::Run::From{1, 10};
  uint64_t renewals = 0;
  for (const std::string& node : settings.local) {
    Protector protector(settings, run, node, [this](const std::string& sentence) { said += sentence + "\n"; });
    ASSERT_TRUE(protector.begin().ok());
    while (protector.work()) ++renewals;
  }
  EXPECT_EQ(said, "");
  EXPECT_EQ(renewals, 1u);
  EXPECT_EQ(stored().size(), 1u);
  EXPECT_NE(stored(), before);
  for (const catalog::FoundVersion& one : found()) EXPECT_TRUE(one.is_complete());
  expect_all_is_read(10);
}

TEST_F(Packs, of_which_a_unit_is_damaged_are_written_anew_from_what_is_right) {
  write_step(10);
  protect_all();
  const layout::Manifest one = found().front().manifest;
  const layout::Manifest& pack = layout::stored(one);
  int damaged = 0;
  for (const auto& disk : site.disks)
    for (const auto& [name, node] : disk.root->entries)
      if (name == pack.directory && damaged++ == 0)
        for (const auto& [object, inode] : node->entries)
          if (object != "manifest" && inode->now.size() > 0) {
            const std::byte other{0x5a};
            inode->now.write(7, ByteView(&other, 1));
          }
  ASSERT_GT(damaged, 0);
  expect_all_is_read(10);
  ASSERT_TRUE(renew(one, settings.local, settings).ok());
  EXPECT_EQ(found().size(), ranks);
  expect_all_is_read(10);
}

TEST_F(Packs, one_that_cannot_be_read_takes_no_other_with_it) {
  write_step(10);
  const LocalFiles files("/n1", run.id, run.attempt);
  for (const LocalName& name : files.list(State::closed))
    if (name.rank == 2) {
      ASSERT_TRUE(catalog::unlink_file(files.path(State::closed, name)).ok());
      ASSERT_EQ(site.symlinkat("/nowhere", AT_FDCWD, files.path(State::closed, name).c_str()), 0);
    }
  protect_all();
  EXPECT_NE(said.find("/data/ck.10.2 is not protected"), std::string::npos) << said;
  EXPECT_EQ(found().size(), ranks - 1);
}

TEST_F(Packs, of_a_protector_that_died_are_written_once_more) {
  write_step(10);
  const LocalFiles files("/n1", run.id, run.attempt);
  protect_all();
  const auto kept = files.list(State::kept);
  for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(files.move(kept[i], State::kept, State::protecting).ok());  // it was killed before it had moved these
  protect_all();
  EXPECT_EQ(files.list(State::kept).size(), ranks);
  EXPECT_EQ(stored().size(), 2u);
  std::vector<Checkpoint> all;
  ASSERT_TRUE(newest(all)) << "two of one number and node are no rivals";
  expect_all_is_read(10);
  for (const uint64_t step : {20, 30}) write_step(step), protect_all();
  EXPECT_EQ(drop_old(1), 2 * ranks + 3);
  EXPECT_EQ(stored().size(), 1u);
}

TEST_F(Packs, hold_rolls_as_well) {
  use("/data/{step}.*.{rank}");
  for (const uint64_t step : {10, 20})
    for (uint32_t rank = 0; rank < ranks; ++rank)
      for (const char which : {'a', 'b'})
        write(rank, "/data/" + std::to_string(step) + "." + which + "." + std::to_string(rank), std::string(100 + rank, which));
  protect_all();
  EXPECT_EQ(said, "");
  EXPECT_LE(stored().size(), 3u);
  std::vector<Checkpoint> all;
  const Checkpoint* const one = newest(all);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->step, 10u) << "nothing says yet that 20 is all there";
  EXPECT_EQ(one->files.size(), 2 * ranks);
  EXPECT_EQ(one->rolls.size(), ranks);
}

TEST_F(Packs, have_no_files_without_a_rank) {
  use("/data/{step}/part*");
  for (uint32_t rank = 0; rank < ranks; ++rank) write(rank, "/data/10/part" + std::to_string(rank), "some");
  protect_all();
  EXPECT_EQ(stored().size(), ranks);
}

}  // namespace
}  // namespace holdfast::checkpoint
