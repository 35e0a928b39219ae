// A file is opened while the journal that holds another opener's synced bytes cannot be opened on any target, for a moment (a full descriptor
// table is such a moment). It was passed over in silence: reads gave what was there before it, and a commit made that final.
#include <gtest/gtest.h>

#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

const Extent theirs{100, 200}, mine{1000, 100};

struct Waiting {
  World world{"mirror:2", layout::Placement::separate, 2};
  std::unique_ptr<exchange::Exchange> job = exchange::make_solo();
  std::unique_ptr<engine::ProtectedFile> lone;
  const uint64_t row_bytes = world.identity.geometry.row_bytes();
  const Extent row{0, row_bytes};

  // The lone opener lives, so that what the other one has committed stays in its journal.
  Waiting() {
    auto file = world.open(*job, true);
    EXPECT_TRUE(file.ok() && (*file)->write({&row, 1}, Bytes(row_bytes, std::byte(7))).ok() && (*file)->sync().ok());
    lone = std::move(*file);
    auto alone = exchange::make_solo();
    auto other = world.open(*alone);
    EXPECT_TRUE(other.ok() && (*other)->write({&theirs, 1}, Bytes(theirs.length, std::byte(8))).ok() && (*other)->close().ok());
  }
  Result<std::unique_ptr<engine::ProtectedFile>> open_with_a_bad_moment(exchange::Exchange& ranks, int64_t after, bool write) {
    for (int member = 0; member < 2; ++member) world.gate->fail_later(member, after, Kind::io);
    auto file = world.open(ranks, false, write);
    for (int member = 0; member < 2; ++member) world.gate->heal(member);
    return file;
  }
};

TEST(Issue, a_journal_that_no_target_can_show_is_not_passed_over_by_a_reader) {
  for (int64_t after = 1; after < 40; ++after) {
    Waiting there;
    auto alone = exchange::make_solo();
    auto file = there.open_with_a_bad_moment(*alone, after, false);
    if (!file.ok()) continue;
    Bytes seen(theirs.length);
    EXPECT_TRUE((*file)->read({&theirs, 1}, seen).ok()) << "it looks for the journal again: " << after;
    EXPECT_EQ(seen, Bytes(theirs.length, std::byte(8))) << after;
  }
}

TEST(Issue, a_journal_that_no_target_can_show_is_not_passed_over_by_a_commit) {
  for (int64_t after = 1; after < 40; ++after) {
    Waiting there;
    {
      auto alone = exchange::make_solo();
      auto file = there.open_with_a_bad_moment(*alone, after, true);
      if (!file.ok()) continue;
      (void)(*file)->write({&mine, 1}, Bytes(mine.length, std::byte(9)));
      (void)(*file)->close();
    }
    (void)there.lone->close();
    auto alone = exchange::make_solo();
    auto reader = there.world.open(*alone, false, false);
    Bytes seen(theirs.length);
    ASSERT_TRUE(reader.ok() && (*reader)->read({&theirs, 1}, seen).ok()) << after;
    EXPECT_EQ(seen, Bytes(theirs.length, std::byte(8))) << after;
  }
}

}  // namespace
}  // namespace holdfast::sim
