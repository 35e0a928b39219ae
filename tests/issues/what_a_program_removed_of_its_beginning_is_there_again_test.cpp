// A pattern with a wildcard. An attempt removed a file of the checkpoint that it had begun with, and died before a newer one was whole. The next one began with that again, and did
// not see the file: the note of the removal named it as one that is protected by itself, and such notes hold for all attempts.
#include "checkpoint/roll.hpp"
#include "checkpoint/singles.hpp"
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class RemovedBeginning : public TwoRanks {
 protected:
  RemovedBeginning() : TwoRanks("/data/{step}/*") {
    for (const uint32_t rank : {0, 1}) write_file(rank, path(rank));
    EXPECT_TRUE(roll_ended(run, settings, {}).empty());
    EXPECT_EQ(whole(), std::vector<uint64_t>{1});
  }
  static std::string path(uint32_t rank) { return "/data/1/a" + std::to_string(rank); }
  void begin_next() {
    begin_again_with(1);
    run.attempt = ++attempts;
    fronts.clear(), protectors.clear();
    for (const uint32_t rank : {0, 1})
      fronts.push_back(Front::make(settings, *Patterns::parse(settings.checkpoint), run, {rank, 2, settings.local[rank * 2]}));
    const auto survey = surveyor.look(run.id);
    ASSERT_TRUE(survey.ok());
    note_removed(*survey, run, settings.deadline_ms);  // as `run` does
  }
  uint32_t attempts = 1;
};

// One has read its file before, and the other one has not.
TEST_F(RemovedBeginning, is_there_for_the_next_attempt) {
  begin_next();
  ASSERT_EQ(fronts[0]->look(*fronts[0]->match(path(0)))->what, Front::Sight::local);
  for (const uint32_t rank : {0, 1}) ASSERT_TRUE(fronts[rank]->remove(*fronts[rank]->match(path(rank))).ok());
  EXPECT_EQ(fronts[0]->look(*fronts[0]->match(path(0)))->what, Front::Sight::absent);
  EXPECT_FALSE(remembers_removed(*surveyor.look(run.id), run.id));
  begin_next();
  for (const uint32_t rank : {0, 1}) {
    const auto sight = fronts[rank]->look(*fronts[rank]->match(path(rank)));
    ASSERT_TRUE(sight.ok()) << sight.status().sentence();
    EXPECT_EQ(sight->what, Front::Sight::local) << "rank " << rank;
  }
}

}  // namespace
}  // namespace holdfast::checkpoint
