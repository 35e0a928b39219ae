// A node on which no rank was did not answer any more. What it had had of a checkpoint nobody knew, so none was completed from there on: by the file of --complete, or by the end
// of the job. Ranks that waited for that file waited for good. Where one rank alone writes files of its own only notes of ranks say where the others are.
#include <cstdlib>

#include "base/node_path.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/ended.hpp"
#include "checkpoint/parts.hpp"
#include "checkpoint/roll.hpp"
#include "checkpoint/shared.hpp"
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class NodeWithoutRanks : public TwoRanks {
 protected:
  NodeWithoutRanks() : TwoRanks("/data/{step}/*.{rank}") {
    for (const uint64_t step : {1, 2})
      for (const uint32_t rank : {0, 1}) write_file(rank, "/data/" + std::to_string(step) + "/a." + std::to_string(rank));
  }
};

TEST_F(NodeWithoutRanks, is_not_asked_what_it_has_had) {
  EXPECT_EQ(whole(), std::vector<uint64_t>{1});
  for (const int without : {1, 3}) site.gate->fail(sim::Site::gate_number(without), Kind::timed_out);
  EXPECT_TRUE(roll_ended(run, settings, {}).empty());
  EXPECT_EQ(whole(), (std::vector<uint64_t>{1, 2}));
}

TEST_F(NodeWithoutRanks, is_none_of_which_nothing_is_known) {
  site.gate->fail(sim::Site::gate_number(2), Kind::timed_out);
  EXPECT_FALSE(roll_ended(run, settings, {}).empty());
  EXPECT_EQ(whole(), std::vector<uint64_t>{1});
}

TEST_F(NodeWithoutRanks, is_none_that_may_have_forgotten_names) {
  EXPECT_FALSE(roll_ended(run, settings, {settings.local[2]}).empty());
  EXPECT_TRUE(roll_ended(run, settings, {settings.local[3]}).empty());
  EXPECT_EQ(whole(), (std::vector<uint64_t>{1, 2}));
}

// The completing file's own roll is no rank's, though it says 0.
TEST_F(NodeWithoutRanks, is_none_that_has_a_rank_which_a_roll_of_all_seems_to_be_of) {
  run.attempt = 2;
  const Patterns patterns = *Patterns::parse({"/data/{step}/*"}, {"/data/{step}/DONE"});
  Settings completed = settings;
  completed.checkpoint = {"/data/{step}/*"}, completed.complete = {"/data/{step}/DONE"};
  const auto second = Front::make(completed, patterns, run, {1, 2, settings.local[2]});
  Protector protector(completed, run, settings.local[2], [](const std::string&) {});
  ASSERT_TRUE(protector.begin().ok());
  const auto write = [&](const std::string& path) {
    Status status;
    const int fd = second->open_to_write(*second->match(path), O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
    ASSERT_GE(fd, 0) << status.sentence();
    site.close(fd);
    second->closed(fd);
    protector.work(), protector.work();  // the file, and the roll that comes with it
  };
  write("/data/1/b"), write("/data/1/DONE");
  EXPECT_EQ(all().back().roll_of_all.has_value(), true);
  site.gate->fail(sim::Site::gate_number(0), Kind::timed_out);
  write("/data/2/b"), write("/data/2/DONE");
  EXPECT_EQ(all().back().step, 2u);
  EXPECT_FALSE(all().back().roll_of_all.has_value()) << "the first rank may have had files of it";
}

// The second rank may be on any node.
TEST_F(NodeWithoutRanks, is_not_known_where_a_rank_has_written_nothing) {
  run.attempt = 2;
  const auto alone = Front::make(settings, *Patterns::parse(settings.checkpoint), run, {0, 2, settings.local[0]});
  Status status;
  const int fd = alone->open_to_write(*alone->match("/data/3/a.0"), O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
  ASSERT_GE(fd, 0) << status.sentence();
  site.close(fd);
  alone->closed(fd);
  site.gate->fail(sim::Site::gate_number(3), Kind::timed_out);
  EXPECT_FALSE(roll_ended(run, settings, {}).empty());
}

// As its first process does on its node.
void begin_rank(uint32_t rank, uint32_t ranks, const Run& run, const std::string& node, const char* launch = "a") {
  setenv("PMIX_NAMESPACE", launch, 1);
  setenv("PMI_RANK", std::to_string(rank).c_str(), 1);
  setenv("PMI_SIZE", std::to_string(ranks).c_str(), 1);
  RankNote(LocalFiles(parse_node_path(node).path, run.id, run.attempt)).begins();
  for (const char* const variable : {"PMIX_NAMESPACE", "PMI_RANK", "PMI_SIZE"}) unsetenv(variable);
}

// The first rank alone has written something, and the fourth node is lost.
class NotedRanks : public NodeWithoutRanks {
 protected:
  NotedRanks() {
    run.attempt = 2;
    const auto alone = Front::make(settings, *Patterns::parse(settings.checkpoint), run, {0, 2, settings.local[0]});
    Status status;
    const int fd = alone->open_to_write(*alone->match("/data/3/a.0"), O_WRONLY | O_CREAT | O_TRUNC, 0644, status);
    EXPECT_GE(fd, 0) << status.sentence();
    site.close(fd);
    alone->closed(fd);
    begin_rank(0, 2, run, settings.local[0]);
  }
  bool is_completed() {
    site.gate->fail(sim::Site::gate_number(3), Kind::timed_out);
    return roll_ended(run, settings, {}).empty();
  }
};

TEST_F(NotedRanks, are_on_other_nodes) {
  begin_rank(1, 2, run, settings.local[2]);
  EXPECT_TRUE(is_completed());
}

TEST_F(NotedRanks, may_be_on_the_lost_node) {
  begin_rank(1, 2, run, settings.local[3]);
  EXPECT_FALSE(is_completed());
}

TEST_F(NotedRanks, are_others_of_a_second_program) {
  begin_rank(1, 2, run, settings.local[2]);
  begin_rank(0, 2, run, settings.local[0], "b");
  EXPECT_FALSE(is_completed()) << "its second rank may be on the lost node";
}

// A file that ranks write together is complete once a file of --complete says so. The second rank has not taken part.
class NotedRanksTogether : public TwoRanks {
 protected:
  NotedRanksTogether() : TwoRanks("/data/{step}.{rank}") {
    run.attempt = 2;
    settings.checkpoint = {"shared:/data/ck.{step}"};
    const auto front = Front::make(settings, *Patterns::parse(settings.checkpoint), run, {0, 2, settings.local[0]});
    const auto shared = front->open_shared(*front->match("/data/ck.1"), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    EXPECT_TRUE(shared.ok()) << shared.status().sentence();
    if (!shared) return;
    EXPECT_TRUE(front->shared_written(*shared).ok());
    front->shared_closed(*shared, true, true);
    name = shared->name;
    EXPECT_TRUE(Parts(LocalFiles("/n1", run.id, run.attempt)).completed(name, {}).ok());
    begin_rank(0, 2, run, settings.local[0]);
  }
  Status is_complete() {
    site.gate->fail(sim::Site::gate_number(3), Kind::timed_out);
    const auto nodes = SharedFiles::look(run, settings);
    const auto files = nodes->find("/data/ck.1");
    return files && !files->empty() ? nodes->is_complete(files->back(), false) : Status(Kind::not_found, "no record");
  }
  LocalName name;
};

TEST_F(NotedRanksTogether, are_on_other_nodes) {
  begin_rank(1, 2, run, settings.local[2]);
  const Status complete = is_complete();
  EXPECT_TRUE(complete.ok()) << complete.sentence();
}

TEST_F(NotedRanksTogether, may_be_on_the_lost_node) {
  begin_rank(1, 2, run, settings.local[3]);
  EXPECT_EQ(is_complete().kind(), Kind::lost);
}

// Its note is still there; the name of a process that has the file open may be gone.
TEST_F(NotedRanksTogether, may_have_been_forgotten_by_a_node_that_was_started_anew) {
  begin_rank(1, 2, run, settings.local[2]);
  ASSERT_TRUE(catalog::make_file(LocalFiles("/n3", run.id, run.attempt).directory() + "/" + started_anew, 0600).ok());
  EXPECT_EQ(is_complete().kind(), Kind::lost);
}

}  // namespace
}  // namespace holdfast::checkpoint
