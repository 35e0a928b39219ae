// A version was made anew, and gave way while a program read it. What was not there any more was read as zeros: how much had been read nobody asked. Found by the
// simulator (seed 90 of Checkpoints.shared_*).
#include "catalog/user_files.hpp"
#include "checkpoint/protect.hpp"
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

constexpr size_t bytes_of_all = 300'000;

class RemovedWhileRead : public TwoRanks {
 protected:
  RemovedWhileRead() : TwoRanks("/data/ck.{step}.{rank}") {
    settings.buffer_bytes = 64 << 10;
    EXPECT_TRUE(catalog::replace_file("/data/source", "/data/source.new", std::string(bytes_of_all, 'x'), 0600, false).ok());
    EXPECT_TRUE(protect("/data/source", {run.id, 1, 1, 0, 1, 1, "/data/ck.1.0", 1, 1}, settings.local[0], settings).ok());
    const auto found = catalog::VersionList().look(settings.local, settings.deadline_ms);
    manifest = found->at(0).manifest;
  }
  // Once so many bytes have been read.
  Status fetch_and_remove_at(uint64_t bytes) {
    return fetch(manifest, "/data/read", settings, [&](uint64_t done, uint64_t) {
      if (done < bytes || is_removed) return true;
      return is_removed = catalog::remove_version(catalog::locate_version(manifest, settings)).ok();
    });
  }

  layout::Manifest manifest;
  bool is_removed = false;
};

TEST_F(RemovedWhileRead, nothing_is_read_as_zeros) {
  for (const uint64_t bytes : {1, 100'000, 200'000}) {
    (void)catalog::unlink_file("/data/read");
    const Status fetched = fetch_and_remove_at(bytes);
    EXPECT_TRUE(is_removed);
    const auto text = catalog::read_beginning("/data/read", bytes_of_all);
    EXPECT_TRUE(!fetched.ok() || (text && *text == std::string(bytes_of_all, 'x'))) << bytes;
    is_removed = false;
    EXPECT_TRUE(protect("/data/source", {run.id, 1, 1, 0, 1, 1, "/data/ck.1.0", 1, 1}, settings.local[0], settings).ok());
    manifest = catalog::VersionList().look(settings.local, settings.deadline_ms)->at(0).manifest;
  }
}

// As a read may find it whose open was before.
TEST_F(RemovedWhileRead, what_is_shorter_than_its_manifest_says_is_refused) {
  manifest.size += 1000;
  EXPECT_FALSE(fetch(manifest, "/data/read", settings).ok());
}

}  // namespace
}  // namespace holdfast::checkpoint
