// A write of a checkpoint's file had failed, and that was noted under the name of its version. The version's content got another name, by a change of its
// permissions, a cut to some length, or an update: the note stayed behind, and the half of a file became a version.
#include "base/node_path.hpp"
#include "sim/two_ranks.hpp"

namespace holdfast::checkpoint {
namespace {

class FailedWrites : public TwoRanks {
 protected:
  FailedWrites() : TwoRanks("/data/ck.{step}.{rank}") {
    protectors.clear();
    protectors.emplace_back(settings, run, settings.local[0], [](const std::string&) {});
    EXPECT_TRUE(protectors[0].begin().ok());
  }
  int open(int flags = O_WRONLY | O_CREAT | O_TRUNC) {
    Status status;
    const int fd = fronts[0]->open_to_write(file(), flags, 0644, status);
    EXPECT_GE(fd, 0) << status.sentence();
    return fd;
  }
  void put(int fd, const std::string& text) { EXPECT_EQ(site.pwrite(fd, text.data(), text.size(), 0), ssize_t(text.size())); }
  void fail(int fd) {
    put(fd, "half");
    fronts[0]->write_failed(fd, EIO);
  }
  void close(int fd) {
    site.close(fd);
    fronts[0]->closed(fd);
  }
  Front::File file() { return *fronts[0]->match("/data/ck.5.0"); }
  size_t in(State state) { return LocalFiles(parse_node_path(settings.local[0]).path, run.id, run.attempt).list(state).size(); }
  size_t versions() { return protected_of(*catalog::VersionList().look(settings.local, 1000)).size(); }
  // Whatever has become of the file, nothing of it is protected.
  void expect_none(size_t failed = 1) {
    protectors[0].work();
    EXPECT_EQ(versions(), 0u);
    EXPECT_EQ(in(State::failed), failed);
  }
};

TEST_F(FailedWrites, though_permissions_are_changed_before_it_is_looked_at) {
  const int fd = open();
  fail(fd);
  close(fd);
  fronts[0]->mode_changed(file());
  expect_none(2);
}

TEST_F(FailedWrites, though_the_file_is_cut_to_some_length_in_an_update) {
  const int first = open();
  put(first, "whole");
  close(first);
  protectors[0].work();
  ASSERT_EQ(versions(), 1u);
  const int fd = open(O_RDWR);
  fail(fd);
  fronts[0]->truncated(fd, 3);
  close(fd);
  protectors[0].work();
  EXPECT_EQ(versions(), 1u) << "the one of before";
  EXPECT_EQ(in(State::failed), 1u);
}

TEST_F(FailedWrites, though_an_update_begins_with_them) {
  for (const bool is_looked_at : {false, true}) {
    const int fd = open();
    fail(fd);
    close(fd);
    if (is_looked_at) protectors[0].work();
    const int more = open(O_WRONLY | O_APPEND);
    put(more, "more");
    close(more);
    protectors[0].work();
    EXPECT_EQ(versions(), 0u);
  }
}

TEST_F(FailedWrites, and_what_is_written_anew_is_a_version) {
  const int fd = open();
  fail(fd);
  close(fd);
  protectors[0].work();
  const int again = open();
  put(again, "whole");
  close(again);
  protectors[0].work();
  EXPECT_EQ(versions(), 1u);
}

// A child's write has failed, and nothing was changed: the copy goes, and its number is given again.
TEST_F(FailedWrites, of_a_version_that_there_never_was_say_nothing_of_the_next) {
  const int first = open();
  put(first, "whole");
  close(first);
  protectors[0].work();
  const LocalFiles files(parse_node_path(settings.local[0]).path, run.id, run.attempt);
  const int fd = open(O_RDWR);
  ASSERT_TRUE(files.say_why(files.list(State::writing).at(0), "the program could not write all of it").ok());  // by the child
  close(fd);
  ASSERT_EQ(in(State::writing) + in(State::closed), 0u);
  const int again = open(O_RDWR);
  put(again, "other");
  close(again);
  protectors[0].work();
  EXPECT_EQ(versions(), 2u);
  EXPECT_EQ(in(State::failed), 0u);
}

}  // namespace
}  // namespace holdfast::checkpoint
