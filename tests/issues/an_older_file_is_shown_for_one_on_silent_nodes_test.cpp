// Of a file that is protected by itself a node had read a version, and another node has written a newer one since. Cut off from more nodes than may be lost, the
// first one showed what it had read, without a word.
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class OlderFile : public TwoRanks {
 protected:
  OlderFile() : TwoRanks("/data/*.dat"), file(*fronts[1]->match("/data/a.dat")) {
    write_file(0, file.path);
    EXPECT_EQ(fronts[1]->look(file)->what, Front::Sight::local);
  }
  void cut_off_the_second_rank() {
    for (const int node : {0, 1}) site.gate->fail(sim::Site::gate_number(node), Kind::timed_out);
  }

  const Front::File file;
};

TEST_F(OlderFile, is_not_shown_for_one_on_silent_nodes) {
  write_file(0, file.path);
  cut_off_the_second_rank();
  const auto sight = fronts[1]->look(file);
  ASSERT_FALSE(sight.ok());
  EXPECT_EQ(sight.status().kind(), Kind::lost) << sight.status().sentence();
  for (const int node : {0, 1}) site.heal(sim::Site::gate_number(node));
  EXPECT_EQ(fronts[1]->look(file)->what, Front::Sight::local);
}

TEST_F(OlderFile, is_shown_where_it_is_the_newest) {
  site.gate->fail(sim::Site::gate_number(0), Kind::timed_out);
  const auto sight = fronts[1]->look(file);
  ASSERT_TRUE(sight.ok());
  EXPECT_EQ(sight->what, Front::Sight::local);
}

}  // namespace
}  // namespace holdfast::checkpoint
