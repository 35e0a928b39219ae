// A thread asked for a file while another one removed it: its note was still there, and its data were not. That was an I/O error, "lost", where a
// program expects ENOENT.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "catalog/catalog.hpp"
#include "engine/protected_file.hpp"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

TEST(RemovedMeanwhile, is_not_found) {
  char name[] = "/tmp/holdfast-issue-XXXXXX";
  const std::string base = ::mkdtemp(name), path = base + "/f";
  Settings settings;
  settings.protect = "mirror:2";
  for (const char* target : {"/a", "/b"}) {
    fs::create_directory(base + target);
    settings.targets.push_back(base + target);
  }
  ASSERT_TRUE(catalog::create(path, settings, 0644).ok());
  std::atomic<bool> over{false};
  std::thread other([&] {
    for (int round = 0; round < 300; ++round) {
      const Status removed = catalog::remove(path, settings), made = catalog::create(path, settings, 0644).status();
      EXPECT_TRUE(removed.ok() && made.ok()) << removed.sentence() << made.sentence();
    }
    over = true;
  });
  Settings known;  // nothing but the path leads there
  while (!over) {
    const Status status = catalog::locate(path, known).status();
    EXPECT_TRUE(status.ok() || status.kind() == Kind::not_found) << status.sentence();
    if (HasFailure()) break;
  }
  other.join();
  fs::remove_all(base);
}

}  // namespace
}  // namespace holdfast
