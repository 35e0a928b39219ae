// The last block of a whole copy is written padded and cut afterwards; the path's remembered state was taken
// before the cut, so that every mirror whose size is no multiple of a block was refused as "changed from
// outside".
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "catalog/catalog.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"

namespace holdfast {
namespace {

TEST(Issue, a_plain_copy_cut_to_its_size_is_not_an_edit) {
  char name[] = "/tmp/holdfast-issue-XXXXXX";
  const std::string directory = mkdtemp(name);
  Settings settings;
  settings.protect = "mirror:2";
  for (const char* target : {"/a", "/b"}) {
    std::filesystem::create_directory(directory + target);
    settings.targets.push_back(directory + target);
  }
  const std::string path = directory + "/out.dat";
  auto alone = exchange::make_solo();
  auto located = catalog::create(path, settings, 0644);
  ASSERT_TRUE(located.ok()) << located.status().sentence();
  auto file = engine::ProtectedFile::open(std::move(*located), {.read = true, .write = true, .fresh = true}, settings, *alone);
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  const Bytes content(100001, std::byte(7));
  const Extent extent{0, content.size()};
  ASSERT_TRUE((*file)->write_all({&extent, 1}, content).ok());
  ASSERT_TRUE((*file)->close().ok());
  EXPECT_EQ(std::filesystem::file_size(path), content.size());
  auto again = catalog::locate(path, settings);
  EXPECT_TRUE(again.ok()) << again.status().sentence();
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace holdfast
