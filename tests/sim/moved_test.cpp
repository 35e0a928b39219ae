// A checkpoint's file that is renamed to another one's name: its version moves, and nothing of it is coded or sent again.
#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/entry.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/moved.hpp"
#include "checkpoint/protector.hpp"
#include "checkpoint/survey.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "sim/pool_on_site.hpp"

namespace holdfast::checkpoint {
namespace {

using Front = frontend::posix::Checkpoints;

// The one rank of a job, on the first of six nodes.
class Moved : public ::testing::Test, protected sim::PoolOnSite {
 protected:
  Moved() : PoolOnSite(1, 6) {
    settings.protect = "rs:3+2";
    settings.pack_below_bytes = 0;
    begin(1, {});
  }
  void begin(int attempt, std::optional<checkpoint::Run::From> from, const std::string& pattern = "/data/ck.{step}.{rank}") {
    settings.checkpoint = {pattern};
    run = {.id = "00000000000000ab", .attempt = uint64_t(attempt), .from = from, .nodes = settings.local};
    front = Front::make(settings, *Patterns::parse(settings.checkpoint), run, {0, 1, settings.local[0]});
  }
  static std::string path_of(uint64_t step) { return "/data/ck." + std::to_string(step) + ".0"; }
  LocalFiles files() const { return {"/n1", run.id, run.attempt}; }

  void write(const std::string& path) {
    Status status;
    const int fd = front->open_to_write(*front->match(path), O_WRONLY | O_CREAT | O_TRUNC, 0640, status);
    ASSERT_GE(fd, 0) << status.sentence();
    ASSERT_EQ(site.write(fd, content.data(), content.size()), ssize_t(content.size()));
    site.close(fd);
    front->closed(fd);
  }
  // As the door does: the new name first.
  void give_name(const std::string& from, const std::string& to) {
    const auto seen = front->look(*front->match(from));
    ASSERT_TRUE(seen.ok() && seen->what == Front::Sight::local);
    const Status taken = front->take(seen->path, *front->match(to));
    ASSERT_TRUE(taken.ok()) << taken.sentence();
  }
  void rename(const std::string& from, const std::string& to) {
    give_name(from, to);
    ASSERT_TRUE(front->remove(*front->match(from)).ok());
  }
  void protect_all() {
    Protector protector(settings, run, settings.local[0], [this](const std::string& sentence) { said += sentence + "\n"; });
    ASSERT_TRUE(protector.begin().ok());
    protector.work();
  }
  std::optional<catalog::FoundVersion> version_of(const std::string& path) {
    const auto all = catalog::VersionList().look(settings.local, settings.deadline_ms);
    if (!all) return {};
    const auto one = std::find_if(all->begin(), all->end(), [&](const auto& each) {
      return each.manifest.version->file == path && each.manifest.version->attempt == run.attempt;
    });
    return one == all->end() ? std::nullopt : std::optional(*one);
  }
  // The objects with units of all versions on all nodes, each once: a second name makes none.
  size_t unit_objects() const {
    std::set<const sim::Inode*> all;
    for (const auto& disk : site.disks)
      for (const auto& [name, directory] : disk.root->entries)
        if (catalog::is_file_directory(name))
          for (const auto& [object, inode] : directory->entries)
            if (object == "data") all.insert(inode.get());
    return all.size();
  }
  void expect_read(const std::string& path) {
    const auto one = version_of(path);
    ASSERT_TRUE(one);
    EXPECT_TRUE(one->is_complete());
    for (int a = 0; a < 6; ++a)
      for (int b = a + 1; b < 6; ++b) {
        for (const int node : {a, b}) site.gate->fail(sim::Site::gate_number(node), Kind::timed_out);
        (void)catalog::unlink_file("/data/fetched");
        const Status fetched = fetch(one->manifest, "/data/fetched", settings);
        ASSERT_TRUE(fetched.ok()) << fetched.sentence();
        const auto bytes = catalog::read_small("/data/fetched", 1 << 20);
        EXPECT_TRUE(bytes && *bytes == content);
        EXPECT_EQ(catalog::look("/data/fetched", false)->mode & 0777, 0640u);
        for (const int node : {a, b}) site.gate->heal(sim::Site::gate_number(node));
      }
  }
  void drop_all_but_newest() {
    Surveyor surveyor(settings.local, settings.deadline_ms);
    const auto all = surveyor.look_at_versions();
    for (const auto& one : surveyor.stores_of(to_drop(*all, run.id, 1))) EXPECT_TRUE(drop(one, run.attempt, settings).ok());
  }

  static constexpr size_t width = 5;
  std::string content = std::string(30'001, 'x') + "end";
  checkpoint::Run run;
  std::unique_ptr<Front> front;
  std::string said;
};

TEST_F(Moved, what_is_protected_is_neither_coded_nor_sent_again) {
  write(path_of(1));
  protect_all();
  EXPECT_EQ(unit_objects(), width);
  rename(path_of(1), path_of(2));
  protect_all();
  EXPECT_EQ(said, "");
  EXPECT_EQ(unit_objects(), width) << "a node has stored bytes again";
  expect_read(path_of(2));
  EXPECT_TRUE(version_of(path_of(2))->manifest.file_id.ends_with(catalog::digits_of_node(settings.local[0])));
  EXPECT_EQ(front->look(*front->match(path_of(1)))->what, Front::Sight::absent);
}

TEST_F(Moved, it_is_what_was_written_last_that_moves) {
  for (content[7] = 'a'; content[7] <= 'e'; ++content[7]) {  // all of one size: chance says in which order they are found
    write(path_of(1));
    protect_all();
  }
  --content[7];
  rename(path_of(1), path_of(2));
  protect_all();
  EXPECT_EQ(unit_objects(), 5 * width);
  expect_read(path_of(2));
}

TEST_F(Moved, its_local_file_has_two_names_and_one_content) {
  write(path_of(1));
  protect_all();
  rename(path_of(1), path_of(2));
  const auto of = [&](State state, uint64_t step) {
    for (const LocalName& name : files().list(state))
      if (name.step == step) return catalog::look(files().path(state, name), false)->inode;
    return uint64_t(0);
  };
  EXPECT_NE(of(State::closed, 2), 0u);
  EXPECT_EQ(of(State::closed, 2), of(State::kept, 1));
}

TEST_F(Moved, what_waits_is_coded_once) {
  write(path_of(1));
  rename(path_of(1), path_of(2));
  protect_all();
  EXPECT_EQ(unit_objects(), width);
  expect_read(path_of(2));
}

// A protector was killed when it had the file in hands.
TEST_F(Moved, what_is_being_coded_is_coded_once) {
  write(path_of(1));
  for (const LocalName& name : files().list(State::closed)) ASSERT_TRUE(files().move(name, State::closed, State::protecting).ok());
  rename(path_of(1), path_of(2));
  protect_all();
  EXPECT_EQ(unit_objects(), width);
  expect_read(path_of(2));
}

TEST_F(Moved, it_may_go_on_to_further_names) {
  write(path_of(1));
  protect_all();
  for (uint64_t step = 1; step < 5; ++step) {
    rename(path_of(step), path_of(step + 1));
    if (step % 2) protect_all();
  }
  protect_all();
  EXPECT_EQ(unit_objects(), width);
  expect_read(path_of(5));
}

TEST_F(Moved, the_former_version_goes_and_takes_nothing_with_it) {
  write(path_of(1));
  protect_all();
  rename(path_of(1), path_of(2));
  protect_all();
  drop_all_but_newest();
  EXPECT_FALSE(version_of(path_of(1)));
  expect_read(path_of(2));
}

TEST_F(Moved, with_a_wildcard_a_temporary_name_costs_no_second_coding) {
  begin(1, {}, "/data/{step}/*");
  write("/data/10/data.new");
  protect_all();
  rename("/data/10/data.new", "/data/10/data");
  protect_all();
  EXPECT_EQ(unit_objects(), width);
  expect_read("/data/10/data");
}

TEST_F(Moved, a_temporary_name_that_is_no_checkpoints_is_never_coded) {
  ASSERT_TRUE(catalog::replace_file("/data/new", "/data/new.half", content, 0640, false).ok());
  protect_all();
  EXPECT_EQ(unit_objects(), 0u);
  ASSERT_TRUE(front->take("/data/new", *front->match(path_of(1))).ok());
  protect_all();
  EXPECT_EQ(unit_objects(), width);
  expect_read(path_of(1));
}

// Between the two halves of a rename the program dies: both names have the content, and each is whole by itself.
TEST_F(Moved, a_program_that_dies_within_the_rename_leaves_one_content) {
  write(path_of(1));
  protect_all();
  give_name(path_of(1), path_of(2));
  protect_all();
  expect_read(path_of(1));
  expect_read(path_of(2));
  EXPECT_EQ(unit_objects(), width);
  Surveyor surveyor(settings.local, settings.deadline_ms);
  const auto all = surveyor.look_at_versions();
  const Checkpoint* const newest = newest_whole(*all, run.id);
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->step, 2u);
}

TEST_F(Moved, what_an_attempt_has_begun_with_moves_as_well) {
  write(path_of(1));
  protect_all();
  begin(2, checkpoint::Run::From{1, 1});
  rename(path_of(1), path_of(2));
  protect_all();
  EXPECT_EQ(said, "");
  EXPECT_EQ(unit_objects(), width);
  expect_read(path_of(2));
}

// --- where the former version cannot serve the file is coded, as any

TEST_F(Moved, one_that_lacks_a_member_is_coded_again_over_those_that_live) {
  write(path_of(1));
  protect_all();
  site.change_disk(2, nullptr);
  rename(path_of(1), path_of(2));
  protect_all();
  EXPECT_GT(unit_objects(), width);
  EXPECT_TRUE(version_of(path_of(2))->readable());
}

TEST_F(Moved, one_that_is_damaged_is_coded_again_from_the_local_file) {
  write(path_of(1));
  protect_all();
  const auto manifest = version_of(path_of(1))->manifest;
  for (const auto& [object, inode] : site.disks[1].root->entries.at(manifest.directory)->entries)
    if (object == "data") inode->now.write(7, Bytes{std::byte{0x5a}});
  rename(path_of(1), path_of(2));
  protect_all();
  EXPECT_EQ(unit_objects(), 2 * width);
  EXPECT_EQ(said, "");
  expect_read(path_of(2));
}

TEST_F(Moved, one_of_another_scheme_is_coded_by_the_scheme_that_is_asked_for) {
  write(path_of(1));
  protect_all();
  settings.protect = "rs:2+2";
  begin(2, checkpoint::Run::From{1, 1});
  rename(path_of(1), path_of(2));
  protect_all();
  EXPECT_EQ(version_of(path_of(2))->manifest.geometry.scheme.name(), "rs:2+2");
  expect_read(path_of(2));
}

// Each write on each node fails in turn: the file is a version under its new name, whole, and nothing is left of the attempt that failed.
TEST_F(Moved, a_node_that_is_full_meanwhile_leaves_no_half_of_it) {
  write(path_of(1));
  protect_all();
  for (size_t node = 1; node < width; ++node) {
    const uint64_t step = node + 1;
    site.disks[node].full = true;
    give_name(path_of(1), path_of(step));
    protect_all();
    site.disks[node].full = false;
    const auto one = version_of(path_of(step));
    ASSERT_TRUE(one) << node;
    EXPECT_TRUE(one->readable() && one->endures());
  }
}

}  // namespace
}  // namespace holdfast::checkpoint
