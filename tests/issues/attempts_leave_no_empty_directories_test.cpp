// Each restart left the directories of its attempt on each node, eleven of them, for the rest of the run: a job that was started again often listed them all each time.
#include "base/node_path.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/leftovers.hpp"
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class PastAttempts : public TwoRanks {
 protected:
  PastAttempts() : TwoRanks("/data/ck.{step}.{rank}") {
    for (uint32_t number = 2; number <= 6; ++number) EXPECT_TRUE(files_of(number).make().ok());
  }
  LocalFiles files_of(uint32_t number) { return {parse_node_path(settings.local[0]).path, run.id, {number, 0}}; }
  std::set<uint32_t> left_before(uint32_t until) {
    forget_unneeded(*surveyor.look(run.id), run.id, {until, 0}, {}, settings);
    std::set<uint32_t> numbers;
    for (uint32_t number = 1; number <= until; ++number)
      if (catalog::look(files_of(number).directory(), false)) numbers.insert(number);
    return numbers;
  }
};

TEST_F(PastAttempts, without_files_go_but_for_the_last_one) {
  EXPECT_EQ(left_before(7), (std::set<uint32_t>{6}));
  EXPECT_EQ(next_attempt(*surveyor.look(run.id), run.id, {}, 0).number, 7u);
}

TEST_F(PastAttempts, that_have_something_to_say_stay) {
  write_file(0, "/data/ck.1.0");  // in attempt 1: of which there is a version
  EXPECT_TRUE(files_of(2).hide({.step = 1, .file = "/data/ck.1.0"}).ok());
  EXPECT_TRUE(files_of(3).note_unread("some-id", "why").ok());
  EXPECT_TRUE(catalog::make_file(files_of(4).path(State::dropped, {.step = 1, .file = "/data/ck.1.0"}), 0600).ok());
  EXPECT_EQ(left_before(7), (std::set<uint32_t>{1, 2, 3, 6})) << "what an attempt has dropped only itself had to know";
}

TEST_F(PastAttempts, that_live_still_begin_anew) {
  (void)left_before(7);
  EXPECT_TRUE(files_of(2).make().ok());
  EXPECT_FALSE(*files_of(2).was_started_anew()) << "what it writes from here on counts as before";
  EXPECT_EQ(left_before(7), (std::set<uint32_t>{6}));
}

}  // namespace
}  // namespace holdfast::checkpoint
