// The ranks of a job look for their file one by one. A repair in between moved a target's part elsewhere: one rank had found the old target, the
// others the new one. Rows of the first went to the old one, with the manifest calling the new one current: M further losses took them.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "catalog/catalog.hpp"
#include "engine/protected_file.hpp"
#include "engine/repair_file.hpp"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

class ReplacedAtOpen : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr uint64_t row_bytes = 2 * 4096, rows = 6;

  ReplacedAtOpen() {
    char name[] = "/tmp/holdfast-issue-XXXXXX";
    base_ = ::mkdtemp(name);
    for (const char* directory : {"a", "b", "c", "n"}) fs::create_directory(at(directory));
    settings_.protect = "rs:2+1";
    settings_.targets = {at("a"), at("b"), at("c")};
    settings_.striping_unit = 4096;
    auto file = *engine::ProtectedFile::open(*catalog::create(at("f"), settings_, 0644), {true, true, true}, settings_, *alone_);
    const Bytes content(rows * row_bytes, std::byte(7));
    const Extent extent{0, content.size()};
    EXPECT_TRUE(file->write({&extent, 1}, content).ok() && file->close().ok());
  }
  ~ReplacedAtOpen() override { fs::remove_all(base_); }
  std::string at(const std::string& name) const { return base_ + "/" + name; }

  // Each rank writes its half of the rows, over what was there.
  void write(std::vector<catalog::Located> found) {
    auto ranks = exchange::make_threads(2);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank)
      threads.emplace_back([&, rank] {
        auto file = engine::ProtectedFile::open(std::move(found[size_t(rank)]), {true, true, false}, settings_, *ranks[size_t(rank)]);
        ASSERT_TRUE(file.ok()) << file.status().sentence();
        const Bytes content(rows / 2 * row_bytes, std::byte(20 + rank));
        const Extent extent{uint64_t(rank) * content.size(), content.size()};
        const Status written = (*file)->write({&extent, 1}, content), closed = (*file)->close();
        EXPECT_TRUE(written.ok() && closed.ok()) << written.sentence() << closed.sentence();
      });
    for (std::thread& thread : threads) thread.join();
  }

  std::unique_ptr<exchange::Exchange> alone_ = exchange::make_solo();
  std::string base_;
  Settings settings_;
};

TEST_P(ReplacedAtOpen, every_target_that_is_called_current_has_all_rows) {
  const bool rank_0_is_late = GetParam();
  auto before = catalog::locate(at("f"), settings_);
  auto report = engine::repair_file(at("f"), {{at("b"), at("n")}}, false, settings_, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().sentence();
  auto after = catalog::locate(at("f"), settings_);
  std::vector<catalog::Located> found;
  found.push_back(std::move(rank_0_is_late ? *after : *before));
  found.push_back(std::move(rank_0_is_late ? *before : *after));
  write(std::move(found));

  auto now = catalog::locate(at("f"), settings_);
  ASSERT_TRUE(now.ok());
  const bool one_is_behind = std::any_of(now->manifest.members.begin(), now->manifest.members.end(), [](auto& member) { return member.stale; });
  if (!one_is_behind) fs::remove_all(at("a"));  // rs:2+1 bears one loss
  auto located = catalog::locate(at("f"), settings_);
  ASSERT_TRUE(located.ok()) << located.status().sentence();
  auto reader = engine::ProtectedFile::open(std::move(*located), {true, false, false}, settings_, *alone_);
  ASSERT_TRUE(reader.ok()) << reader.status().sentence();
  Bytes seen(rows * row_bytes);
  const Extent whole{0, seen.size()};
  auto got = (*reader)->read({&whole, 1}, seen);
  ASSERT_TRUE(got.ok()) << got.status().sentence();
  for (size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], std::byte(20 + (i >= seen.size() / 2))) << "byte " << i;
  (void)(*reader)->close();
  if (one_is_behind) {
    auto mended = engine::repair_file(at("f"), {}, false, settings_, nullptr);
    ASSERT_TRUE(mended.ok()) << mended.status().sentence();
    EXPECT_EQ(mended->status.health, engine::Health::healthy);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ReplacedAtOpen, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "rank_1_found_it_before" : "rank_0_found_it_before"; });

}  // namespace
}  // namespace holdfast
