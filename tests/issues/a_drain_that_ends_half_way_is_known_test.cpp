// Files that are protected one by one were drained while one of them was removed, and the drain did not come to its end. No record said then of which versions the plain files
// are. So the removed one was there again, and what it held as well. Found by the simulator.
#include "catalog/user_files.hpp"
#include "checkpoint/drain.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/singles.hpp"
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class HalfDrained : public TwoRanks {
 protected:
  HalfDrained() : TwoRanks("/data/*.dat") {
    write_text(first), write_text(second);
    const auto survey = surveyor.look(run.id);
    files = manifests_of(survey->checkpoints.front(), survey->versions);
    EXPECT_EQ(files.size(), 2u);
  }
  void write_text(const std::string& path) {
    Status status;
    const int fd = fronts[0]->open_to_write(*fronts[0]->match(path), O_WRONLY | O_CREAT, 0644, status);
    ASSERT_EQ(site.pwrite(fd, path.data(), path.size(), 0), ssize_t(path.size())) << status.sentence();
    site.close(fd);
    fronts[0]->closed(fd);
    protectors[0].work();
  }
  // What stands in the place of the second one when the first has its own already.
  void drain_half() {
    bool is_blocked = false;
    const auto progress = [&](uint64_t, uint64_t) {
      if (!std::exchange(is_blocked, true)) EXPECT_TRUE(catalog::make_with_parents(second + "/in the way").ok());
      return true;
    };
    EXPECT_FALSE(drain_to_own_places(files, {}, settings, progress));
    EXPECT_TRUE(catalog::look(first, true).ok());
  }
  // As `run` does.
  void begin_anew() {
    const auto survey = surveyor.look(run.id);
    run.attempt = 2, run.from = {};
    note_removed(*survey, run, settings.deadline_ms);
    fronts[0] = Front::make(settings, *Patterns::parse(settings.checkpoint), run, {0, 2, settings.local[0]});
  }
  Front::Sight::What seen(const std::string& path) {
    const auto sight = fronts[0]->look(*fronts[0]->match(path));
    EXPECT_TRUE(sight.ok());
    return sight ? sight->what : Front::Sight::local;
  }

  const std::string first = "/data/a.dat", second = "/data/b.dat";
  std::vector<layout::Manifest> files;
};

TEST_F(HalfDrained, what_was_removed_meanwhile_is_not_there_again) {
  EXPECT_TRUE(fronts[0]->remove(*fronts[0]->match(first)).ok());
  drain_half();
  begin_anew();
  EXPECT_EQ(seen(first), Front::Sight::absent);
}

TEST_F(HalfDrained, it_is_known_which_version_stands_there) {
  drain_half();
  const auto survey = surveyor.look(run.id);
  ASSERT_EQ(survey->drained.size(), 1u);
  ASSERT_EQ(survey->drained.front().files.size(), 1u) << "the other one was not placed";
  EXPECT_EQ(survey->drained.front().files.front().path, first);
}

// Killed when it had placed them, and had not noted that yet.
TEST_F(HalfDrained, nor_is_it_where_the_drain_was_killed) {
  EXPECT_TRUE(fronts[0]->remove(*fronts[0]->match(first)).ok());
  ASSERT_TRUE(drain(files, own_place, settings, [](uint64_t, uint64_t) { return true; }));
  ASSERT_TRUE(keep_record(*about_to_be_drained(files, {first, second}), settings.local, settings.deadline_ms).ok());
  begin_anew();
  EXPECT_EQ(seen(first), Front::Sight::absent);
}

// A note of what is about to be placed takes nothing from what an earlier drain has placed.
TEST_F(HalfDrained, what_stood_there_before_is_known_still) {
  ASSERT_TRUE(drain_to_own_places(files, {}, settings, [](uint64_t, uint64_t) { return true; }));
  const auto before = surveyor.look(run.id)->drained;
  const auto again = about_to_be_drained(files, {files[0].version->file, files[1].version->file});
  auto elsewhere = *again;
  for (DrainedFile& file : elsewhere.files) {
    EXPECT_TRUE(file.is_about_to_be() && file.still_there());
    --file.state.change_ns;  // another one of that size has been placed
  }
  ASSERT_TRUE(keep_record(elsewhere, settings.local, settings.deadline_ms).ok());
  const auto after = surveyor.look(run.id)->drained;
  ASSERT_EQ(after.size(), before.size());
  EXPECT_EQ(encode(after.front()), encode(before.front()));
}

}  // namespace
}  // namespace holdfast::checkpoint
