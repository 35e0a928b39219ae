// Teams of several ranks as threads of a test, on one file. A team dies as a whole, at an act of one of its ranks, and takes along what it has not
// synced, or all but a part of it.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "exchange/exchange.hpp"
#include "unit/file/fake_twins.hpp"

namespace holdfast::file::test {

// What lies on storage, and what each opener has written since its last sync.
class Storage {
 public:
  struct Change {
    int opener;
    std::function<void(Bytes&)> apply;
  };
  int open(int team) {
    std::lock_guard lock(mutex_);
    for (const auto& [opener, other] : openers_) two_writers_ |= other != team;
    openers_[++last_] = team;
    return last_;
  }
  void change(int opener, std::function<void(Bytes&)> apply) {
    std::lock_guard lock(mutex_);
    if (openers_.contains(opener)) changes_.push_back({opener, std::move(apply)});  // else it has died in the middle of its call
  }
  void sync(int opener) {
    std::lock_guard lock(mutex_);
    for (const Change& change : changes_)
      if (change.opener == opener) change.apply(durable_);
    std::erase_if(changes_, [opener](const Change& change) { return change.opener == opener; });
  }
  void close(int opener) {
    sync(opener);
    std::lock_guard lock(mutex_);
    openers_.erase(opener);
  }
  Bytes seen_by(int opener) {
    std::lock_guard lock(mutex_);
    Bytes now = durable_;
    for (const Change& change : changes_)
      if (change.opener == opener) change.apply(now);
    return now;
  }
  // Some of what it has written may have come through.
  void lose(int team, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::lock_guard lock(mutex_);
    for (const Change& change : changes_) {
      const auto opener = openers_.find(change.opener);
      if (opener != openers_.end() && opener->second == team && random() % 3 == 0) change.apply(durable_);
    }
    std::erase_if(changes_, [&](const Change& change) { return openers_.contains(change.opener) && openers_[change.opener] == team; });
    std::erase_if(openers_, [team](const auto& one) { return one.second == team; });
  }
  // Two teams have had it open at once.
  bool two_writers() const { return two_writers_; }
  const Bytes& durable() const { return durable_; }

 private:
  std::mutex mutex_;
  Bytes durable_;
  std::vector<Change> changes_;
  std::map<int, int> openers_;  // and their teams
  int last_ = 0;
  bool two_writers_ = false;
};

class World {
 public:
  World(int teams, int ranks, Death death, Storage& storage)
      : teams_(teams), ranks_(ranks), death_(death), storage_(storage), living_(redundant::first_teams(teams)) {
    for (int rank = 0; rank < ranks; ++rank)
      for (int team = 0; team < teams; ++team) meetings_[{rank, team}] = std::make_unique<redundant::Meetings>(team, teams);
  }
  bool lives(int team) const { return living_ >> team & 1; }
  int acts() const { return acts_; }

 private:
  friend class TeamReplica;
  friend class TeamExchange;
  void route(int rank, redundant::Outbox& out) {
    while (!out.empty()) {
      redundant::Outbox answers;
      for (auto& [to, frame] : out)
        if (lives(to)) meetings_[{rank, to}]->take(frame, answers);
      out = std::move(answers);
    }
  }
  // The ranks hear of it one after the other.
  [[noreturn]] void die(int team, std::unique_lock<std::mutex>& lock) {
    living_ &= ~(uint64_t(1) << team);
    storage_.lose(team, uint64_t(death_.act));
    for (int at = 0; at < ranks_; ++at) {
      const int rank = (at + death_.act) % ranks_;
      for (int other = 0; other < teams_; ++other) {
        if (!lives(other)) continue;
        redundant::Outbox out;
        meetings_[{rank, other}]->live(1, living_, out);
        heard_[{rank, other}] = 1;
        route(rank, out);
      }
      changed_.notify_all();
      if (death_.act % 2) lock.unlock(), std::this_thread::yield(), lock.lock();
    }
    changed_.notify_all();
    throw Died();
  }
  void wait(int team, std::unique_lock<std::mutex>& lock) {
    changed_.wait(lock);
    if (!lives(team)) throw Died();
  }

  struct Gathering {
    std::vector<int64_t> most;
    int come = 0, gone = 0;
  };
  const int teams_, ranks_;
  const Death death_;
  Storage& storage_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::unique_ptr<redundant::Meetings>> meetings_;  // by rank and team
  std::map<std::pair<int, int>, uint32_t> heard_;
  std::map<std::pair<int, uint64_t>, Gathering> gatherings_;  // by team and number
  uint64_t living_;
  int acts_ = 0;
};

class TeamExchange final : public exchange::Exchange {
 public:
  TeamExchange(World& world, int team, int rank) : world_(world), team_(team), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return world_.ranks_; }
  int team() const { return team_; }
  void barrier() override { (void)all_max({}); }
  std::vector<int64_t> all_max(std::vector<int64_t> mine) override {
    std::unique_lock lock(world_.mutex_);
    if (!world_.lives(team_)) throw Died();
    auto& gathering = world_.gatherings_[{team_, ++number_}];
    if (gathering.come == 0) gathering.most = mine;
    EXPECT_EQ(gathering.most.size(), mine.size()) << "the ranks of a team make different calls";
    for (size_t i = 0; i < std::min(mine.size(), gathering.most.size()); ++i) gathering.most[i] = std::max(gathering.most[i], mine[i]);
    ++gathering.come;
    world_.changed_.notify_all();
    while (gathering.come < world_.ranks_) world_.wait(team_, lock);
    return gathering.most;
  }
  std::vector<Bytes> all_gather(ByteView mine) override { return std::vector<Bytes>(size_t(world_.ranks_), Bytes(mine.begin(), mine.end())); }
  std::vector<Bytes> all_to_all(std::vector<Bytes> to) override { return to; }

 private:
  World& world_;
  const int team_, rank_;
  uint64_t number_ = 0;
};

class TeamReplica final : public ReplicaOfFiles {
 public:
  TeamReplica(World& world, int team, int rank) : world_(world), place_{.team = team, .rank = rank} {}
  const redundant::Place& place() const override { return place_; }
  bool leads() override {
    std::lock_guard lock(world_.mutex_);
    return mine().leads();
  }
  Bytes meet(uint64_t subject, const redundant::Claim& claim, const std::function<std::string()>& what, const Act& act) override {
    std::unique_lock lock(world_.mutex_);
    if (!world_.lives(place_.team)) throw Died();
    redundant::Outbox out;
    mine().begin(subject, claim, out);
    world_.route(place_.rank, out);
    world_.changed_.notify_all();  // not whenever it wakes: those that wait would keep each other awake
    const uint32_t heard = successions_locked();
    for (;;) {
      const auto state = mine().state(subject);
      if (state == redundant::Meetings::State::differ) ADD_FAILURE() << what();
      if (state == redundant::Meetings::State::differ) throw Died();
      if (state == redundant::Meetings::State::done) return mine().end(subject);
      if (state != redundant::Meetings::State::act) {
        world_.wait(place_.team, lock);
        continue;
      }
      const bool dies = ++world_.acts_ == world_.death_.act && world_.death_.when != Death::never;
      if (dies && world_.death_.when == Death::before) world_.die(place_.team, lock);
      const redundant::Turn turn{.again = heard != successions_locked(), .same_view = true};
      lock.unlock();
      const Bytes outcome = act(turn);
      lock.lock();
      if (!world_.lives(place_.team)) throw Died();
      if (dies && world_.death_.when == Death::within) world_.die(place_.team, lock);
      mine().finish(subject, outcome, out);
      world_.route(place_.rank, out);
      world_.changed_.notify_all();
      if (dies) world_.die(place_.team, lock);
    }
  }
  bool shares_node() const override { return true; }
  bool is_alone() override {
    std::lock_guard lock(world_.mutex_);
    return mine().is_alone();
  }
  uint32_t successions() override {
    std::lock_guard lock(world_.mutex_);
    return successions_locked();
  }
  void leaves(bool, int) override {}

 private:
  redundant::Meetings& mine() { return *world_.meetings_[{place_.rank, place_.team}]; }
  uint32_t successions_locked() { return world_.heard_[{place_.rank, place_.team}]; }
  World& world_;
  const redundant::Place place_;
};

// The file as the ranks of an exchange have it open, together or one of them alone. A rank sees what its opener has written.
class OpenedFile final : public CollectiveFile {
 public:
  OpenedFile(Storage& storage, exchange::Exchange& ranks, int opener) : storage_(storage), ranks_(ranks), opener_(opener) {}
  Status write(std::span<const Extent> extents, ByteView data) override {
    for (const Extent& extent : extents) {
      const ByteView piece = data.first(extent.length);
      storage_.change(opener_, [at = extent.offset, bytes = Bytes(piece.begin(), piece.end())](Bytes& content) { put(content, at, bytes); });
      data = data.subspan(extent.length);
    }
    return Status();
  }
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override {
    const Bytes content = storage_.seen_by(opener_);
    uint64_t got = 0;
    for (const Extent& extent : extents) {
      const uint64_t there = extent.offset < content.size() ? std::min(extent.length, content.size() - extent.offset) : 0;
      std::memcpy(into.data(), content.data() + extent.offset, there);
      into = into.subspan(extent.length);
      got += there;
    }
    return got;
  }
  Status write_all(std::span<const Extent> extents, ByteView data, bool& more) override {
    const Status written = write(extents, data);
    more = ranks_.all_max({more})[0] != 0;
    return written;
  }
  Result<uint64_t> read_all(std::span<const Extent> extents, ByteSpan into, bool& more) override {
    more = ranks_.all_max({more})[0] != 0;
    const auto got = read(extents, into);
    ranks_.barrier();
    return got;
  }
  Result<Extent> append(std::span<const ByteView>, bool) override { return Status(Kind::unsupported, ""); }
  Result<uint64_t> size() override { return uint64_t(storage_.seen_by(opener_).size()); }
  Result<uint64_t> agreed_size() override {
    ranks_.barrier();
    const uint64_t bytes = *size();
    ranks_.barrier();
    return bytes;
  }
  Status sync() override {
    ranks_.barrier();
    if (ranks_.rank() == 0) storage_.sync(opener_);
    ranks_.barrier();
    return Status();
  }
  Status set_size(uint64_t bytes) override {
    HF_TRY(sync());
    if (ranks_.rank() == 0) storage_.change(opener_, [bytes](Bytes& content) { content.resize(bytes); });
    return sync();
  }
  Status close() override {
    ranks_.barrier();
    if (ranks_.rank() == 0) storage_.close(opener_);
    ranks_.barrier();
    return Status();
  }
  Status set_atomic(bool) override { return sync(); }

 private:
  Storage& storage_;
  exchange::Exchange& ranks_;
  const int opener_;
};

}  // namespace holdfast::file::test
