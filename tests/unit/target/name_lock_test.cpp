// Locks by name, with contenders that take turns at every call: one at a time has the store, and who is next is the test's to say.
#include "target/name_lock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ucontext.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace holdfast::target {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct File {
  std::string content;
};

// What a server has: names and the files that they lead to.
class Names final : public NameStore {
 public:
  bool has_links = true, counts_links = true;
  int lost_answers = 0;  // so many calls are made, and their callers hear that there was nothing to do
  std::map<std::string, std::shared_ptr<File>> files;

  std::string describe() const override { return "/t"; }
  Status make(const std::string& name, const std::string& content) override {
    if (files.count(name)) return Status(Kind::exists, name, EEXIST);
    files[name] = std::make_shared<File>(File{content});
    return {};
  }
  Status link(const std::string& from, const std::string& to) override {
    if (!has_links) return Status(Kind::unsupported, to, EPERM);
    if (!files.count(from)) return gone(from);
    if (files.count(to)) return Status(Kind::exists, to, EEXIST);
    files[to] = files[from];
    return lost_answers-- > 0 ? Status(Kind::exists, to, EEXIST) : Status();
  }
  Status rename(const std::string& from, const std::string& to) override {
    if (!files.count(from)) return gone(from);
    files[to] = files[from];
    files.erase(from);
    return lost_answers-- > 0 ? gone(from) : Status();
  }
  bool fails = false;
  Status remove(const std::string& name) override {
    if (fails) return Status(Kind::io, name, EIO);
    return files.erase(name) ? Status() : gone(name);
  }
  Result<std::string> read(const std::string& name) override {
    if (!files.count(name)) return gone(name);
    return files[name]->content;
  }
  Result<int> links(const std::string& name) override {
    if (!files.count(name)) return gone(name);
    int count = 0;
    for (const auto& [other, file] : files) count += file == files[name];
    return counts_links ? count : 1;
  }
  Result<std::vector<std::string>> list() override {
    std::vector<std::string> all;
    for (const auto& [name, file] : files) all.push_back(name);
    return all;
  }

 private:
  static Status gone(const std::string& name) { return Status(Kind::not_found, name, ENOENT); }
};

// Processes of one node: each knows which have died.
struct Node {
  std::set<int> dead;
  int holds = 0;

  Processes seen_by(int process) {
    if (!left[process]) left[process] = std::make_shared<LeftHolds>();
    return {[this, process] {
              LockOwner owner;
              owner.host = "node";
              owner.process = process;
              owner.since = "today";
              owner.number = std::to_string(1000 + holds++);
              return owner;
            },
            [this](const LockOwner& owner) { return dead.count(owner.process) > 0; }, left[process]};
  }
  std::map<int, std::shared_ptr<LeftHolds>> left;
};

// Contenders of which one runs at a time, each on a stack of its own, until it gives the turn back.
class Turns {
 public:
  void add(std::function<void()> body) {
    fibers_.push_back(std::make_unique<Fiber>());
    fibers_.back()->body = std::move(body);
  }
  void run(const std::function<int(const std::vector<int>& ready)>& next) {
    for (auto& fiber : fibers_) prepare(*fiber);
    for (;;) {
      std::vector<int> ready;
      for (int i = 0; i < int(fibers_.size()); ++i)
        if (!fibers_[i]->ended) ready.push_back(i);
      if (ready.empty()) return;
      current_ = next(ready);
      swapcontext(&home_, &fibers_[current_]->context);
    }
  }
  void give_back() { swapcontext(&fibers_[current_]->context, &home_); }

 private:
  struct Fiber {
    std::function<void()> body;
    std::vector<char> stack = std::vector<char>(256 << 10);
    ucontext_t context;
    bool ended = false;
  };
  void prepare(Fiber& fiber) {
    running_ = this;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = &home_;
    makecontext(
        &fiber.context,
        [] {
          Fiber& me = *running_->fibers_[running_->current_];
          me.body();
          me.ended = true;
        },
        0);
  }

  static inline Turns* running_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  ucontext_t home_;
  int current_ = -1;
};

class NameLock : public testing::Test {
 protected:
  Result<std::unique_ptr<Lock>> lock(int process, Hold hold = Hold::alone) { return lock_by_name(names_, "lock", hold, node_.seen_by(process)); }
  // As its process is killed: nothing of it is let go.
  void kill_holder(int process, std::unique_ptr<Lock> held) {
    const auto now = names_->files;
    held.reset();
    names_->files = now;
    node_.dead.insert(process);
  }
  std::vector<std::string> left() const {
    std::vector<std::string> all;
    for (const auto& [name, file] : names_->files) all.push_back(name);
    return all;
  }

  std::shared_ptr<Names> names_ = std::make_shared<Names>();
  Node node_;
};

TEST_F(NameLock, one_holds_it_and_others_hear_who_that_is) {
  auto held = lock(1);
  ASSERT_TRUE(held.ok()) << held.status().sentence();
  const Status other = lock(2).status();
  EXPECT_EQ(other.kind(), Kind::busy);
  EXPECT_THAT(other.sentence(), HasSubstr("process 1 of node since today"));
  held->reset();
  EXPECT_THAT(left(), IsEmpty());
  EXPECT_TRUE(lock(2).ok());
}

TEST_F(NameLock, what_a_dead_one_held_is_taken_and_nothing_of_it_stays) {
  kill_holder(1, std::move(*lock(1)));
  EXPECT_EQ(left().size(), 2u);
  auto held = lock(2);
  ASSERT_TRUE(held.ok()) << held.status().sentence();
  held->reset();
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(NameLock, who_cannot_be_proved_dead_holds_it_until_somebody_says_so) {
  auto held = lock(1);
  kill_holder(1, std::move(*held));
  node_.dead.clear();
  EXPECT_EQ(lock(2).status().kind(), Kind::busy);
  auto broken = break_locks(*names_);
  ASSERT_TRUE(broken.ok());
  ASSERT_EQ(broken->size(), 1u);
  EXPECT_EQ(broken->front(), "/t/lock.held, held by process 1 of node since today");
  EXPECT_THAT(left(), IsEmpty());
  EXPECT_TRUE(lock(2).ok());
}

TEST_F(NameLock, who_was_broken_by_mistake_takes_nothing_from_the_next_one) {
  auto first = lock(1);
  ASSERT_TRUE(break_locks(*names_).ok());
  auto second = lock(2);
  ASSERT_TRUE(second.ok());
  first->reset();
  EXPECT_EQ(lock(3).status().kind(), Kind::busy);
}

// An agent lives on for days after its disk has failed for a moment.
TEST_F(NameLock, whose_names_could_not_be_removed_is_free_again_where_it_was_held) {
  auto held = lock(1);
  names_->fails = true;
  held->reset();
  names_->fails = false;
  EXPECT_EQ(left().size(), 2u);
  EXPECT_EQ(lock(2).status().kind(), Kind::busy) << "others cannot know";
  held = lock(1);
  ASSERT_TRUE(held.ok()) << held.status().sentence();
  held->reset();
  EXPECT_THAT(left(), IsEmpty());
  auto shared = lock(1, Hold::shared);
  names_->fails = true;
  shared->reset();
  names_->fails = false;
  EXPECT_TRUE(lock(1, Hold::probe).ok());
  EXPECT_THAT(left(), IsEmpty());
}

// A network file system asks again where no answer came, and hears of what it has done itself.
TEST_F(NameLock, is_had_although_answers_were_lost) {
  names_->lost_answers = 1;
  auto held = lock(1);
  ASSERT_TRUE(held.ok()) << held.status().sentence();
  kill_holder(1, std::move(*held));
  names_->lost_answers = 2;  // of the renaming, and of the link after it
  held = lock(2);
  ASSERT_TRUE(held.ok()) << held.status().sentence();
  held->reset();
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(NameLock, several_share_and_a_probe_finds_the_living_among_them) {
  auto one = lock(1, Hold::shared), two = lock(2, Hold::shared);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(lock(3, Hold::probe).status().kind(), Kind::busy);
  one->reset();
  EXPECT_EQ(lock(3, Hold::probe).status().kind(), Kind::busy);
  kill_holder(2, std::move(*two));
  auto probe = lock(3, Hold::probe);
  ASSERT_TRUE(probe.ok()) << probe.status().sentence();
  EXPECT_EQ(lock(4, Hold::shared).status().kind(), Kind::busy);
  probe->reset();
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(NameLock, works_where_files_have_no_links_or_nobody_counts_them) {
  for (const bool links : {false, true}) {
    names_->has_links = links;
    names_->counts_links = false;
    auto held = lock(1);
    ASSERT_TRUE(held.ok()) << held.status().sentence();
    EXPECT_EQ(lock(2).status().kind(), Kind::busy);
    kill_holder(1, std::move(*held));
    held = lock(2);
    ASSERT_TRUE(held.ok()) << held.status().sentence();
    held->reset();
    EXPECT_THAT(left(), IsEmpty());
    node_.dead.clear();
  }
}

// What one process has of the store: before each call others may come, and from its death on none of its calls does anything. A name that
// leads to one file after another is read from the node's cache at times, which may be old.
class Process final : public NameStore {
 public:
  Process(std::shared_ptr<Names> names, std::function<bool()> may_call, std::function<bool()> cached)
      : names_(std::move(names)), may_call_(std::move(may_call)), cached_(std::move(cached)) {}
  std::string describe() const override { return names_->describe(); }
  Status make(const std::string& name, const std::string& content) override { return may_call_() ? names_->make(name, content) : dead(); }
  Status link(const std::string& from, const std::string& to) override { return may_call_() ? names_->link(from, to) : dead(); }
  Status rename(const std::string& from, const std::string& to) override { return may_call_() ? names_->rename(from, to) : dead(); }
  Status remove(const std::string& name) override { return may_call_() ? names_->remove(name) : dead(); }
  Result<std::string> read(const std::string& name) override {
    if (!may_call_()) return dead();
    if (auto known = seen_.find(name); name == "lock.held" && known != seen_.end() && cached_()) return known->second;
    return seen_.insert_or_assign(name, names_->read(name)).first->second;
  }
  Result<int> links(const std::string& name) override { return may_call_() ? names_->links(name) : dead(); }
  Result<std::vector<std::string>> list() override { return may_call_() ? names_->list() : dead(); }

 private:
  static Status dead() { return Status(Kind::lost, "killed", EIO); }
  std::shared_ptr<Names> names_;
  std::function<bool()> may_call_, cached_;
  std::map<std::string, Result<std::string>> seen_;
};

// Three contenders, each killed somewhere or not, beside what a dead holder has left: never two hold it, and in the end it can be had.
class Contest {
 public:
  explicit Contest(uint64_t seed) : random_(seed) {
    if (random_() % 2) leave_a_dead_holder();
  }

  void run() {
    for (int process = 1; process <= 3; ++process) turns_.add([this, process] { contend(process); });
    const unsigned stays = random_() % 4;  // in four: how often the turn stays where it is
    int last = -1;
    turns_.run([&](const std::vector<int>& ready) {
      const bool can_stay = std::find(ready.begin(), ready.end(), last) != ready.end();
      if (!can_stay || random_() % 4 >= stays) last = ready[random_() % ready.size()];
      return last;
    });
    EXPECT_LE(most_, 1);
    for (int process : {1, 2, 3}) node_.dead.insert(process);
    auto last_one = lock_by_name(names_, "lock", Hold::alone, node_.seen_by(9));
    EXPECT_TRUE(last_one.ok()) << last_one.status().sentence();
  }
  int taken() const { return taken_; }
  int killed() const { return int(node_.dead.size()); }

 private:
  void leave_a_dead_holder() {
    auto held = lock_by_name(names_, "lock", Hold::alone, node_.seen_by(8));
    const auto now = names_->files;
    held->reset();
    names_->files = now;
    node_.dead.insert(8);
    if (random_() % 3 == 0) names_->files.erase("lock.held");  // it was letting go
  }
  // False: the process has been killed.
  bool step(int process) {
    if (node_.dead.count(process)) return false;
    turns_.give_back();
    if (random_() % 40 == 0) node_.dead.insert(process);
    return !node_.dead.count(process);
  }
  void contend(int process) {
    auto store = std::make_shared<Process>(
        names_, [this, process] { return step(process); }, [this] { return random_() % 3 == 0; });
    for (int round = 0; round < 4; ++round) {
      auto held = lock_by_name(store, "lock", Hold::alone, node_.seen_by(process));
      if (!held.ok()) continue;
      ++taken_;
      most_ = std::max(most_, ++inside_);
      step(process);
      --inside_;  // before it lets go, or at its death
    }
  }

  std::mt19937_64 random_;
  std::shared_ptr<Names> names_ = std::make_shared<Names>();
  Node node_;
  Turns turns_;
  int inside_ = 0, most_ = 0, taken_ = 0;
};

TEST(NameLockContest, never_two_hold_it_whoever_dies_wherever) {
  int taken = 0, killed = 0;
  for (uint64_t seed = 1; seed <= 5000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Contest contest(seed);
    contest.run();
    taken += contest.taken();
    killed += contest.killed();
  }
  EXPECT_GT(taken, 5000);
  EXPECT_GT(killed, 2000);
}

}  // namespace
}  // namespace holdfast::target
