// Checkpoints of a redundant job: a replica dies at each of its calls, before, in and after what it does there, with its node or alone. What the others have
// written is there then, once, and nothing else.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "catalog/pool.hpp"
#include "catalog/versions.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/protector.hpp"
#include "checkpoint/run.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "unit/catalog/scene.hpp"
#include "unit/file/fake_twins.hpp"

namespace holdfast::frontend::posix {
namespace {

using checkpoint::LocalFiles;
using checkpoint::LocalName;
using checkpoint::State;
using file::test::Death;
using file::test::Died;
using file::test::Disk;
using file::test::FakeReplica;
using file::test::Group;

struct Case {
  int teams = 2;
  bool apart = false, with_its_node = false;
  Death death = {};
  int without = -1;  // this team cannot copy what is renamed
};

// One rank of a job that is there several times, on one node of three or on one each.
class TwinCheckpoints {
 public:
  explicit TwinCheckpoints(const Case& which) : case_(which), group_(which.teams, which.death, disk_) {
    scene_.targets(3, "mirror:2");
    scene_.settings.local.swap(scene_.settings.targets);
    EXPECT_TRUE(catalog::open_pool(scene_.settings));
    scene_.settings.checkpoint = {path("ck.{step}.{rank}")};
    scene_.settings.lock_patience_ms = 2000;
    run_ = {.id = "0123456789abcdef", .attempt = 1, .from = {}, .simulated = true, .nodes = scene_.settings.local, .teams = which.teams};
    for (const std::string& node : run_.nodes) {
      protectors_.push_back(std::make_unique<checkpoint::Protector>(scene_.settings, run_, node, [](const std::string&) {}));
      EXPECT_TRUE(protectors_.back()->begin());
    }
    if (case_.with_its_node) group_.at_loss = [this](int team) { lose_node(team); };
  }

  void run() {
    std::vector<std::thread> threads;
    for (int team = 0; team < case_.teams; ++team)
      threads.emplace_back([this, team] {
        try {
          program(team);
        } catch (const Died&) {
        }
      });
    for (std::thread& thread : threads) thread.join();
    std::vector<bool> over(protectors_.size());
    for (int look = 0; look < 20 && std::count(over.begin(), over.end(), false) > 0; ++look)
      for (size_t node = 0; node < over.size(); ++node) over[node] = int(node) == lost_node_ || protectors_[node]->finish_closed();
    EXPECT_EQ(std::count(over.begin(), over.end(), false), 0);
    for (size_t node = 0; node < over.size(); ++node) {
      if (int(node) != lost_node_) {
        EXPECT_TRUE(protectors_[node]->end());
      }
    }
  }

  // One version of each, with what was written; and nothing on its way.
  void check() {
    catalog::VersionList list;
    const auto found = list.look(scene_.settings.local, scene_.settings.deadline_ms);
    ASSERT_TRUE(found) << found.status().sentence();
    std::map<std::string, std::string> written{{"ck.2.0", "second, anew"}};
    if (case_.without != 0) written["ck.3.0"] = "third";
    for (const auto& [name, text] : written) {
      std::vector<layout::Manifest> versions;
      for (const catalog::FoundVersion& one : *found)
        if (one.manifest.version->file == path(name)) versions.push_back(one.manifest);
      std::sort(versions.begin(), versions.end(), [](const auto& a, const auto& b) { return a.version->number < b.version->number; });
      ASSERT_FALSE(versions.empty()) << name;
      EXPECT_EQ(versions.size(), versions.back().version->number) << name << ": each was written once";
      const std::string copy = path("copy");
      ASSERT_TRUE(checkpoint::fetch(versions.back(), copy, scene_.settings));
      EXPECT_EQ(Fixture::read(copy), text) << name;
      std::filesystem::remove(copy);
    }
    for (const checkpoint::Checkpoint& one : checkpoint::checkpoints_of(checkpoint::protected_of(*found)))
      EXPECT_TRUE(one.rivals.empty()) << one.step;
    for (const std::string& node : run_.nodes) {
      if (lost_node_ >= 0 && node == run_.nodes[size_t(lost_node_)]) continue;
      const LocalFiles files(node, run_.id, run_.attempt);
      for (const State state : {State::writing, State::closed, State::protecting, State::failed, State::torn}) EXPECT_TRUE(files.list(state).empty());
      for (const auto& entry : std::filesystem::recursive_directory_iterator(files.directory()))
        if (entry.path().parent_path().filename() == "writing") ADD_FAILURE() << entry.path();
    }
  }

  // Whether this team's node knows that the number has been given, and has no copy.
  bool remembers_only(int team, const std::string& name) const {
    const LocalFiles files(run_.nodes[size_t(node_of(team))], run_.id, run_.attempt);
    const auto is_it = [&](const LocalName& one) { return one.file == path(name); };
    return std::ranges::any_of(files.list(State::dropped), is_it) && std::ranges::none_of(files.list(State::twin), is_it);
  }

  int acts() const { return group_.acts(); }
  int claims() const { return group_.claims(); }

 private:
  struct Fixture : catalog::Scene {
    void TestBody() override {}
    using Scene::read;
    using Scene::settings;
    using Scene::targets;
    using Scene::user;
    using Scene::write;
  };
  std::string path(const std::string& name) const { return scene_.user(name); }
  int node_of(int team) const { return case_.apart ? team : 0; }

  void lose_node(int team) {
    lost_node_ = node_of(team);
    const std::string& node = run_.nodes[size_t(lost_node_)];
    for (const auto& entry : std::filesystem::directory_iterator(node)) std::filesystem::remove_all(entry.path());
  }

  struct Rank {
    Checkpoints& all;
    const TwinCheckpoints& job;
    Checkpoints::File file(const std::string& name) const { return *all.match(job.path(name)); }
    int open(const std::string& name, int flags) const {
      Status status;
      const int fd = all.open_to_write(file(name), flags, 0644, status);
      EXPECT_GE(fd, 0) << name << ": " << status.sentence();
      return fd;
    }
    void close(int fd) const {
      ::close(fd);
      (void)all.closed(fd);
    }
    void write(const std::string& name, const std::string& text, int flags = O_WRONLY | O_CREAT | O_TRUNC) const {
      const int fd = open(name, flags);
      EXPECT_EQ(::write(fd, text.data(), text.size()), ssize_t(text.size()));
      close(fd);
    }
    std::string seen(const std::string& name) const {
      const auto sight = all.look(file(name));
      EXPECT_TRUE(sight) << sight.status().sentence();
      return sight && sight->what == Checkpoints::Sight::local ? Fixture::read(sight->path) : "";
    }
  };

  // What every replica does.
  void program(int team) {
    FakeReplica replica(group_, team);
    const std::string& node = run_.nodes[size_t(node_of(team))];
    const auto all =
        Checkpoints::make(scene_.settings, *checkpoint::Patterns::parse(scene_.settings.checkpoint, {}), run_, {0, 1, node, team, &replica});
    const Rank rank{*all, *this};
    rank.write("ck.1.0", "first");
    EXPECT_EQ(rank.seen("ck.1.0"), "first");
    rank.write("ck.2.0", "second");
    rank.write("ck.2.0", ", anew", O_WRONLY | O_APPEND);
    EXPECT_EQ(rank.seen("ck.2.0"), "second, anew");
    const std::string plain = path("plain." + std::to_string(team));  // of each, so that no other one's removal is in the way
    if (team != case_.without) Fixture::write(plain, "third");
    const Status taken = all->take(plain, rank.file("ck.3.0"));
    EXPECT_EQ(taken.ok(), case_.without != 0) << taken.sentence();
    if (taken.ok() == (case_.without == 0)) replica.die();
    if (case_.without < 0) {
      EXPECT_EQ(rank.seen("ck.3.0"), "third");
    }
    EXPECT_TRUE(all->remove(rank.file("ck.1.0")));
    EXPECT_EQ(rank.seen("ck.1.0"), "");
    EXPECT_EQ(all->remove(rank.file("ck.1.0")).kind(), Kind::not_found);
  }

  const Case case_;
  Disk disk_{false};
  Group group_;
  Fixture scene_;
  checkpoint::Run run_;
  std::vector<std::unique_ptr<checkpoint::Protector>> protectors_;
  std::atomic<int> lost_node_{-1};
};

void check_deaths(const Case& which, std::initializer_list<Death::When> times) {
  TwinCheckpoints well(which);
  well.run();
  well.check();
  for (const Death::When when : times) {
    const int last = when == Death::after_claiming ? well.claims() : well.acts();
    for (int n = 1; n <= last && !::testing::Test::HasFailure(); ++n) {
      SCOPED_TRACE(::testing::Message() << "death " << int(when) << " at " << n);
      Case dies = which;
      dies.death = {when, n};
      TwinCheckpoints one(dies);
      one.run();
      one.check();
    }
  }
}

TEST(TwinCheckpoints, a_replica_dies_at_any_call_on_the_node_of_the_others) { check_deaths({.teams = 2}, {Death::before, Death::after}); }
TEST(TwinCheckpoints, a_replica_dies_at_any_call_on_a_node_of_its_own) {
  check_deaths({.teams = 2, .apart = true}, {Death::after, Death::after_claiming});
}
TEST(TwinCheckpoints, a_replica_dies_at_any_call_with_its_node) {
  check_deaths({.teams = 3, .apart = true, .with_its_node = true}, {Death::before, Death::after});
}

TEST(TwinCheckpoints, a_follower_that_cannot_copy_what_is_renamed_goes_on_without) {
  for (const bool apart : {false, true}) {
    TwinCheckpoints one({.teams = 2, .apart = apart, .without = 1});
    one.run();
    one.check();
    EXPECT_EQ(one.remembers_only(1, "ck.3.0"), apart);
  }
}
TEST(TwinCheckpoints, a_leader_that_cannot_copy_what_is_renamed_refuses_it_for_all) {
  for (const bool apart : {false, true}) {
    TwinCheckpoints one({.teams = 2, .apart = apart, .without = 0});
    one.run();
    one.check();
  }
}

}  // namespace
}  // namespace holdfast::frontend::posix
