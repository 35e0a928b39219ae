// `run` was killed, and what protected the files of its nodes lived on. The next attempt began with a slot, and this slot's newer files came to be protected while
// ranks read it: some read the old ones, others the new ones. Found by the simulator, seed 540271 of Checkpoints.rolled_*.
#include "catalog/user_files.hpp"
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class LateProtectors : public TwoRanks {
 protected:
  explicit LateProtectors(const std::string& pattern = "/data/ck.{step}.{rank}") : TwoRanks(pattern) {}

  static std::string path_of(uint32_t rank, uint64_t step) { return "/data/ck." + std::to_string(step) + "." + std::to_string(rank); }
  void close_file(uint32_t rank, uint64_t step, const std::string& content, int flags = O_TRUNC) {
    const auto file = fronts[rank]->match(path_of(rank, step));
    Status status;
    const int fd = fronts[rank]->open_to_write(*file, O_WRONLY | O_CREAT | flags, 0644, status);
    ASSERT_GE(fd, 0) << status.sentence();
    ASSERT_EQ(site.write(fd, content.data(), content.size()), ssize_t(content.size()));
    site.close(fd);
    fronts[rank]->closed(fd);
  }
  void protect_all(std::vector<Protector>& by) {
    for (int times = 0; times < 4; ++times)
      for (Protector& one : by) one.work();
  }
  void begin_again() {
    late = std::move(protectors);
    protectors.clear(), fronts.clear();
    const auto survey = Surveyor(settings.local, settings.deadline_ms).look(run.id);
    run.attempt = {run.attempt.number + 1, 0}, run.from = beginning_of(*survey, run.id).from;
    ASSERT_TRUE(run.from.has_value());
    run = *decode_run(encode(run));
    for (const uint32_t rank : {0, 1})
      fronts.push_back(Front::make(settings, *Patterns::parse(settings.checkpoint), run, {rank, 2, settings.local[rank * 2]}));
  }
  void start_protectors() {
    for (const uint32_t rank : {0, 1}) {
      protectors.emplace_back(settings, run, settings.local[rank * 2], [](const std::string& sentence) { ADD_FAILURE() << sentence; });
      ASSERT_TRUE(protectors.back().begin().ok());
    }
  }
  std::string read(uint32_t by, uint32_t rank, uint64_t step) {
    const auto sight = fronts[by]->look(*fronts[by]->match(path_of(rank, step)));
    if (!sight) return sight.status().sentence();
    return sight->what == Front::Sight::local ? *catalog::read_beginning(sight->path, 100) : "nothing";
  }

  std::vector<Protector> late;  // of the attempt before
};

TEST_F(LateProtectors, make_no_slot_of_two_times) {
  for (const uint32_t rank : {0, 1}) close_file(rank, 1, "first");
  protect_all(protectors);
  for (const uint64_t step : {2, 1})
    for (const uint32_t rank : {0, 1}) close_file(rank, step, "newer");
  begin_again();
  EXPECT_EQ(run.from->step, 1u);
  EXPECT_EQ(read(0, 0, 1), "first");
  late.pop_back();  // what the second rank's node has is not protected
  protect_all(late);
  EXPECT_EQ(read(1, 1, 1), "first");
  EXPECT_EQ(read(1, 0, 1), "first") << "also what the other node has replaced";
}

TEST_F(LateProtectors, make_no_checkpoint_of_which_some_files_were_gone_on_with) {
  for (const uint32_t rank : {0, 1}) close_file(rank, 1, "first");
  protect_all(protectors);
  for (const uint32_t rank : {0, 1}) close_file(rank, 1, ", more", O_APPEND);
  begin_again();
  protect_all(late);
  for (const uint32_t rank : {0, 1}) EXPECT_EQ(read(1, rank, 1), "first");
}

// What was there before the attempt, and is updated in place, has no count of its closes.
TEST_F(LateProtectors, make_none_of_files_that_are_updated_in_place) {
  for (const uint32_t rank : {0, 1}) close_file(rank, 1, "first");
  protect_all(protectors);
  begin_again();
  start_protectors();
  for (const uint32_t rank : {0, 1}) close_file(rank, 1, "again", 0);
  protect_all(protectors);
  for (const uint32_t rank : {0, 1}) close_file(rank, 1, "later", 0);
  begin_again();
  protect_all(late);
  for (const uint32_t rank : {0, 1}) EXPECT_EQ(read(1, rank, 1), "again");
}

// Before an attempt has a whole one of its own what it has begun with is not dropped for what came late. Then it is.
TEST_F(LateProtectors, take_nothing_from_who_reads_still) {
  for (const uint32_t rank : {0, 1}) close_file(rank, 1, "first");
  protect_all(protectors);
  for (const uint64_t step : {2, 1})
    for (const uint32_t rank : {0, 1}) close_file(rank, step, "newer");
  begin_again();
  protect_all(late);
  const auto old = [&] { return to_drop(*surveyor.look_during(run), run.id, 1); };
  drop_as_run_does(old());
  for (const uint32_t rank : {0, 1}) EXPECT_EQ(read(0, rank, 1), "first");
  start_protectors();
  for (const uint32_t rank : {0, 1}) close_file(rank, 3, "own");
  protect_all(protectors);
  drop_as_run_does(old());
  EXPECT_EQ(whole(), std::vector<uint64_t>{3});
  EXPECT_EQ(all().size(), 1u) << "nothing of the others is left";
}

}  // namespace
}  // namespace holdfast::checkpoint
