// The sidecar is what decides between processes that create a file at once; who lost found a sidecar whose members had
// no manifest yet, took them for lost, and wrote that down.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "catalog/catalog.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"

namespace holdfast {
namespace {

class CreatedFile : public ::testing::Test {
 protected:
  CreatedFile() {
    char name[] = "/tmp/holdfast-issue-XXXXXX";
    root_ = mkdtemp(name);
    settings_.protect = "mirror:3";
    for (int i = 0; i < 6; ++i) {
      settings_.targets.push_back(root_ + "/t" + std::to_string(i));
      std::filesystem::create_directory(settings_.targets.back());
    }
  }
  ~CreatedFile() override { std::filesystem::remove_all(root_); }

  Status open_and_write(const std::string& path, uint64_t offset) {
    auto alone = exchange::make_solo();
    auto located = catalog::create(path, settings_, 0644);
    const bool fresh = located.ok();
    if (located.status().kind() == Kind::exists) located = catalog::locate(path, settings_);
    if (!located) return located.status();
    auto file = engine::ProtectedFile::open(std::move(*located), {.read = true, .write = true, .fresh = fresh}, settings_, *alone);
    if (!file) return file.status();
    const Bytes content(1000, std::byte(7));
    const Extent extent{offset, content.size()};
    HF_TRY((*file)->write({&extent, 1}, content));
    return (*file)->close();
  }

  std::string root_;
  Settings settings_;
};

// A creator between its sidecar and its members: it holds the file's lock, the members have nothing.
TEST_F(CreatedFile, is_waited_for_until_its_creator_is_done) {
  const std::string path = root_ + "/out";
  auto created = catalog::create(path, settings_, 0644);
  ASSERT_TRUE(created.ok()) << created.status().sentence();
  auto lock = created->path_keeper->try_lock();
  ASSERT_TRUE(lock.ok()) << lock.status().sentence();
  const std::string directory = "/" + created->manifest.directory;
  for (const std::string& target : settings_.targets) std::filesystem::rename(target + directory, target + "-aside");
  std::thread creator([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    for (const std::string& target : settings_.targets) std::filesystem::rename(target + "-aside", target + directory);
    lock->reset();
  });
  Status status = open_and_write(path, 0);
  creator.join();
  EXPECT_TRUE(status.ok()) << status.sentence();
  auto located = catalog::locate(path, settings_);
  ASSERT_TRUE(located.ok()) << located.status().sentence();
  for (const auto& member : located->manifest.members) EXPECT_FALSE(member.stale) << member.why;
}

TEST_F(CreatedFile, whose_creator_died_is_finished_by_the_next_opener) {
  const std::string path = root_ + "/out";
  ASSERT_TRUE(catalog::create(path, settings_, 0644).ok());
  // As it is after a death between the sidecar and the members: nothing of the file at the path and on the targets.
  std::filesystem::remove(path);
  for (const std::string& target : settings_.targets)
    for (const auto& entry : std::filesystem::directory_iterator(target))
      if (entry.is_directory()) std::filesystem::remove_all(entry.path());
  Status status = open_and_write(path, 0);
  EXPECT_TRUE(status.ok()) << status.sentence();
  EXPECT_EQ(std::filesystem::file_size(path), 1000u);
}

}  // namespace
}  // namespace holdfast
