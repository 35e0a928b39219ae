// A program wrote a file of the checkpoint anew that its attempt had begun with. When that checkpoint had given way to newer ones, the copy of before was
// still there on the nodes that had read it, and was shown: older bytes than were written last.
#include <fcntl.h>

#include <algorithm>

#include "catalog/user_files.hpp"
#include "checkpoint/drained.hpp"
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class Replaced : public TwoRanks {
 protected:
  Replaced() : TwoRanks("/data/ck.{step}.{rank}") {}

  void write(uint32_t rank, uint64_t step, const std::string& text) {
    Status status;
    const int fd = fronts[rank]->open_to_write(*fronts[rank]->match(path_of(step, rank)), O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
    ASSERT_GE(fd, 0) << status.sentence();
    EXPECT_EQ(site.write(fd, text.data(), text.size()), ssize_t(text.size()));
    site.close(fd);
    (void)fronts[rank]->closed(fd);
    protectors[rank].work();
  }
  void write_all(uint64_t step) {
    for (const uint32_t rank : {0, 1}) write(rank, step, "any");
  }
  // Rank 0's file of step 1, by a rank.
  std::string read_by(uint32_t rank) {
    const auto sight = fronts[rank]->look(*fronts[rank]->match(path_of(1, 0)));
    if (!sight) return sight.status().sentence();
    return sight->what == Front::Sight::local ? *catalog::read_beginning(sight->path, 100) : "absent";
  }
  static std::string path_of(uint64_t step, uint32_t rank) { return "/data/ck." + std::to_string(step) + "." + std::to_string(rank); }
};

TEST_F(Replaced, as_the_attempt_began_with_it) {
  write(0, 1, "before"), write(1, 1, "any");
  begin_again_with(1);
  EXPECT_EQ(read_by(0), "before");
  EXPECT_EQ(read_by(1), "before");
  write(0, 1, "now");
  write_all(2), write_all(3);
  drop_as_run_does(to_drop(all(), run.id, 1));
  EXPECT_EQ(read_by(0), "absent");
  EXPECT_EQ(read_by(1), "absent");
}

TEST_F(Replaced, as_another_node_has_read_it) {
  write(0, 1, "before"), write(1, 1, "any");
  EXPECT_EQ(read_by(1), "before");
  write(0, 1, "now");
  write_all(2), write_all(3);
  drop_as_run_does(to_drop(all(), run.id, 1));
  EXPECT_EQ(read_by(0), "absent");
  EXPECT_EQ(read_by(1), "absent");
}

// What stood at the paths was of an earlier run, or was drained before the file was written anew.
class ReplacedAtItsPath : public Replaced {
 protected:
  void put_at_the_path(const std::string& text) {
    const catalog::Descriptor file(site.openat(AT_FDCWD, path_of(1, 0).c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644));
    ASSERT_EQ(site.write(file.get(), text.data(), text.size()), ssize_t(text.size()));
  }
  void drain_step_1() {
    const auto versions = all();
    const auto one = std::find_if(versions.begin(), versions.end(), [](const Checkpoint& other) { return other.step == 1; });
    ASSERT_TRUE(one != versions.end() && one->whole());
    put_at_the_path("drained");
    DrainedCheckpoint drained{run.id, one->attempt, one->step, {}};
    for (const auto& [place, file] : one->files)
      if (const auto at = catalog::look(file.version.file, true))
        drained.files.push_back({place.number, at->path_state(), file.version.file, version_drained(file.version)});
    ASSERT_TRUE(keep_record(drained, settings.local, settings.deadline_ms).ok());
  }
  void give_way() {
    write_all(2), write_all(3);
    drop_as_run_does(to_drop(all(), run.id, 1));
  }
  // What rank 0 sees: a file at its path is shown as it is there.
  std::string seen() {
    const auto file = *fronts[0]->match(path_of(1, 0));
    const auto sight = fronts[0]->look(file);
    const auto listing = fronts[0]->list("/data");
    EXPECT_TRUE(sight.ok() && listing.ok() && *listing);
    EXPECT_EQ(sight->what == Front::Sight::absent, fronts[0]->hides(**listing, "ck.1.0"));
    return sight->what == Front::Sight::as_without ? *catalog::read_beginning(file.path, 100)
           : sight->what == Front::Sight::absent   ? "absent"
                                                   : "local";
  }
};

TEST_F(ReplacedAtItsPath, is_not_what_was_there_before) {
  put_at_the_path("of an earlier run");
  EXPECT_EQ(seen(), "of an earlier run");
  write_all(1);
  EXPECT_EQ(seen(), "local");
  give_way();
  EXPECT_EQ(seen(), "absent");
}

TEST_F(ReplacedAtItsPath, is_not_what_was_drained_before) {
  write_all(1);
  drain_step_1();
  write(0, 1, "again");
  EXPECT_EQ(seen(), "local");
  give_way();
  EXPECT_EQ(seen(), "absent");
}

TEST_F(ReplacedAtItsPath, is_what_was_drained_of_it) {
  write_all(1);
  drain_step_1();
  give_way();
  EXPECT_EQ(seen(), "drained");
}

}  // namespace
}  // namespace holdfast::checkpoint
