// A file that is protected by itself was removed while a node was cut off, which then had no note of it. A program there saw the file still. If it wrote the file anew,
// the new version got a number of before the removal, and was dropped with what was removed. What a rank removed of its own files the other ranks saw still, for only its node
// had a note of that.
#include "checkpoint/singles.hpp"
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class RemovedUnseen : public TwoRanks {
 protected:
  RemovedUnseen() : TwoRanks("/data/*.dat"), file(*fronts[1]->match("/data/a.dat")) {
    for (int times = 0; times < 3; ++times) write_file(0, file.path);
  }
  void remove_while_the_second_rank_is_cut_off() {
    site.gate->fail(sim::Site::gate_number(2), Kind::timed_out);
    EXPECT_TRUE(fronts[0]->remove(file).ok());
    site.heal(sim::Site::gate_number(2));
  }
  // As `run` does.
  void drop_removed() {
    const auto survey = surveyor.look(run.id);
    ASSERT_TRUE(survey.ok() && surveyor.look_at_versions().ok());
    for (const auto& files : surveyor.stores_of(survey->removed)) ASSERT_TRUE(drop(files, run.attempt, settings).ok());
  }
  Front::Sight::What seen() {
    const auto sight = fronts[1]->look(file);
    EXPECT_TRUE(sight.ok());
    return sight ? sight->what : Front::Sight::local;
  }

  const Front::File file;
};

TEST_F(RemovedUnseen, it_is_not_seen) {
  remove_while_the_second_rank_is_cut_off();
  EXPECT_EQ(seen(), Front::Sight::absent);
}

TEST_F(RemovedUnseen, it_is_not_seen_where_a_copy_of_it_is) {
  EXPECT_EQ(seen(), Front::Sight::local);
  remove_while_the_second_rank_is_cut_off();
  EXPECT_EQ(seen(), Front::Sight::absent);
}

TEST_F(RemovedUnseen, it_is_not_listed) {
  remove_while_the_second_rank_is_cut_off();
  const auto listing = fronts[1]->list("/data");
  ASSERT_TRUE(listing.ok() && *listing);
  EXPECT_FALSE((*listing)->names.contains("a.dat"));
}

TEST_F(RemovedUnseen, what_is_written_anew_stays) {
  remove_while_the_second_rank_is_cut_off();
  drop_removed();
  write_file(1, file.path);
  drop_removed();
  EXPECT_EQ(seen(), Front::Sight::local);
  EXPECT_EQ(all().size(), 1u);
}

// What this node has written could not be protected, and another one has written the file since.
class NotTheLast : public RemovedUnseen {
 protected:
  NotTheLast() {
    Status status;
    const int fd = fronts[1]->open_to_write(file, O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
    site.close(fd);
    fronts[1]->closed(fd);
    const LocalFiles files("/n3", run.id, run.attempt);
    for (const LocalName& name : files.list(State::closed)) EXPECT_TRUE(files.move(name, State::closed, State::failed).ok());
    for (int times = 0; times < 2; ++times) write_file(0, file.path);
  }
};

TEST_F(NotTheLast, the_last_one_is_seen) {
  const auto sight = fronts[1]->look(file);
  ASSERT_TRUE(sight.ok());
  EXPECT_EQ(sight->path.find("/failed/"), std::string::npos) << sight->path;
}

TEST_F(NotTheLast, where_it_is_removed_so_is_the_last_one) {
  EXPECT_TRUE(fronts[1]->remove(file).ok());
  EXPECT_EQ(seen(), Front::Sight::absent);
}

// A rank's own file has its note on that rank's node alone.
class RemovedByItsRank : public TwoRanks {
 protected:
  RemovedByItsRank() : TwoRanks("/data/ck.{step}.{rank}"), file(*fronts[1]->match("/data/ck.1.0")) { write_file(0, file.path); }
  Front::Sight::What seen() {
    const auto sight = fronts[1]->look(file);
    EXPECT_TRUE(sight.ok());
    return sight ? sight->what : Front::Sight::local;
  }
  bool is_listed() {
    const auto listing = fronts[1]->list("/data");
    return listing.ok() && *listing && (*listing)->names.contains("ck.1.0");
  }

  const Front::File file;
};

TEST_F(RemovedByItsRank, it_is_seen_by_no_other_one) {
  EXPECT_TRUE(is_listed());
  EXPECT_TRUE(fronts[0]->remove(file).ok());
  EXPECT_EQ(seen(), Front::Sight::absent);
  EXPECT_FALSE(is_listed());
}

TEST_F(RemovedByItsRank, nor_where_that_one_has_read_it) {
  EXPECT_EQ(seen(), Front::Sight::local);
  EXPECT_TRUE(fronts[0]->remove(file).ok());
  EXPECT_FALSE(is_listed());
  EXPECT_EQ(seen(), Front::Sight::absent);
  EXPECT_EQ(fronts[1]->remove(file).to_errno(), ENOENT);
}

TEST_F(RemovedByItsRank, what_it_writes_anew_is_seen) {
  EXPECT_EQ(seen(), Front::Sight::local);
  EXPECT_TRUE(fronts[0]->remove(file).ok());
  EXPECT_EQ(seen(), Front::Sight::absent);
  write_file(0, file.path);
  EXPECT_EQ(seen(), Front::Sight::local);
  EXPECT_TRUE(is_listed());
}

// A file of all ranks has it on all nodes, but for one that was cut off.
class OfAllRemovedUnseen : public TwoRanks {
 protected:
  OfAllRemovedUnseen() : TwoRanks("/data/ck.{step}") {}
};

TEST_F(OfAllRemovedUnseen, it_is_not_seen) {
  const auto file = *fronts[1]->match("/data/ck.1");
  write_file(0, file.path);
  site.gate->fail(sim::Site::gate_number(2), Kind::timed_out);
  EXPECT_TRUE(fronts[0]->remove(file).ok());
  site.heal(sim::Site::gate_number(2));
  const auto sight = fronts[1]->look(file);
  ASSERT_TRUE(sight.ok());
  EXPECT_EQ(sight->what, Front::Sight::absent);
}

}  // namespace
}  // namespace holdfast::checkpoint
