// Replicas of one rank as threads of a test, and a disk that forgets what a lost one has not synced.
#pragma once
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/file_layer.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::file::test {

struct Died {};

// At which act of all a leader dies, and how far it has come.
struct Death {
  enum When : uint8_t { never, before, within, after } when = never;
  int act = 0;
};

// One file of a disk. Each replica reaches it by a way of its own.
class Disk {
 public:
  explicit Disk(bool forgets) : forgets_(forgets) {}
  Bytes content() const {
    std::lock_guard lock(mutex_);
    Bytes now = durable_;
    for (const Change& change : changes_) change.apply(now);
    return now;
  }
  void change(int team, std::function<void(Bytes&)> apply) {
    std::lock_guard lock(mutex_);
    changes_.push_back({team, std::move(apply)});
    ++count_;
  }
  void sync() {
    std::lock_guard lock(mutex_);
    for (const Change& change : changes_) change.apply(durable_);
    changes_.clear();
  }
  // Its node has gone, with what the kernel had not written yet.
  void lose(int team) {
    std::lock_guard lock(mutex_);
    if (forgets_) std::erase_if(changes_, [team](const Change& change) { return change.team == team; });
  }
  bool forgets() const { return forgets_; }
  int count() const { return count_; }

 private:
  struct Change {
    int team;
    std::function<void(Bytes&)> apply;
  };
  const bool forgets_;
  mutable std::mutex mutex_;
  Bytes durable_;
  std::vector<Change> changes_;
  int count_ = 0;
};

inline void put(Bytes& content, uint64_t at, ByteView data) {
  if (content.size() < at + data.size()) content.resize(at + data.size());
  std::memcpy(content.data() + at, data.data(), data.size());
}

class Group {
 public:
  Group(int teams, Death death, Disk& disk) : death_(death), disk_(disk) {
    for (int team = 0; team < teams; ++team) meetings_.push_back(std::make_unique<redundant::Meetings>(team, teams));
    living_ = (uint64_t(1) << teams) - 1;
  }
  bool lives(int team) const { return living_ >> team & 1; }
  int acts() const { return acts_; }

 private:
  friend class FakeReplica;
  void route(int from, redundant::Outbox& out) {
    while (!out.empty()) {
      redundant::Outbox sent = std::move(out), answers;
      out.clear();
      for (auto& [to, frame] : sent)
        if (lives(to)) meetings_[size_t(to)]->take(frame, answers);
      if (!answers.empty()) return route(from, answers);
    }
  }
  [[noreturn]] void die(int team) {
    living_ &= ~(uint64_t(1) << team);
    disk_.lose(team);
    ++successions_;
    for (size_t other = 0; other < meetings_.size(); ++other)
      if (lives(int(other))) {
        redundant::Outbox out;
        meetings_[other]->live(uint32_t(successions_), living_, out);
        route(int(other), out);
      }
    changed_.notify_all();
    throw Died();
  }

  const Death death_;
  Disk& disk_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<redundant::Meetings>> meetings_;
  uint64_t living_;
  int acts_ = 0, successions_ = 0;
};

class FakeReplica final : public redundant::Replica {
 public:
  FakeReplica(Group& group, int team) : group_(group), place_{.team = team} {}
  const redundant::Place& place() const override { return place_; }
  bool leads() override {
    std::lock_guard lock(group_.mutex_);
    return mine().leads();
  }
  Bytes meet(uint64_t subject, const redundant::Claim& claim, const std::function<std::string()>&, const Act& act) override {
    std::unique_lock lock(group_.mutex_);
    redundant::Outbox out;
    mine().begin(subject, claim, out);
    group_.route(place_.team, out);
    const int successions = group_.successions_;
    for (;;) {
      group_.changed_.notify_all();
      const auto state = mine().state(subject);
      if (state == redundant::Meetings::State::differ) throw Died();
      if (state == redundant::Meetings::State::done) return mine().end(subject);
      if (state != redundant::Meetings::State::act) {
        group_.changed_.wait(lock);
        continue;
      }
      const bool dies = group_.death_.when != Death::never && ++group_.acts_ == group_.death_.act;
      if (group_.death_.when == Death::never) ++group_.acts_;
      if (dies && group_.death_.when == Death::before) group_.die(place_.team);
      tears_ = dies && group_.death_.when == Death::within;
      const redundant::Turn turn{.again = successions != group_.successions_, .same_view = true};
      lock.unlock();
      const Bytes outcome = act(turn);
      lock.lock();
      if (dies) group_.die(place_.team);
      mine().finish(subject, outcome, out);
      group_.route(place_.team, out);
    }
  }
  void decide(uint64_t, ByteSpan answer, Ask ask, void* given) override { ask(given, answer); }
  // Files know no messages.
  Known known(uint64_t, Bytes&) override { return Known::mine; }
  void say(uint64_t, ByteView) override {}
  void say_no(uint64_t) override {}
  void before_a_send() override {}
  void wait_a_moment() override {}
  [[noreturn]] void differs(const std::string&) override { throw Died(); }
  bool shares_node() const override { return !group_.disk_.forgets(); }
  bool is_alone() override {
    std::lock_guard lock(group_.mutex_);
    return mine().is_alone();
  }
  // Of losses of the leader: only leaders die here.
  uint32_t successions() override {
    std::lock_guard lock(group_.mutex_);
    return uint32_t(group_.successions_);
  }
  void leaves(bool) override {}
  bool tears() const { return tears_; }

 private:
  redundant::Meetings& mine() { return *group_.meetings_[size_t(place_.team)]; }
  Group& group_;
  const redundant::Place place_;
  bool tears_ = false;  // what it writes now arrives in part
};

class DiskFile final : public FileLayer {
 public:
  DiskFile(Disk& disk, FakeReplica& replica) : disk_(disk), replica_(replica) {}
  Status write(std::span<const Extent> extents, ByteView data) override {
    for (const Extent& extent : extents) {
      const ByteView all = data.first(extent.length), piece = replica_.tears() ? all.first(all.size() / 2) : all;
      disk_.change(replica_.place().team,
                   [at = extent.offset, bytes = Bytes(piece.begin(), piece.end())](Bytes& content) { put(content, at, bytes); });
      data = data.subspan(extent.length);
    }
    return Status();
  }
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override {
    const Bytes content = disk_.content();
    uint64_t got = 0;
    for (const Extent& extent : extents) {
      const uint64_t there = extent.offset < content.size() ? std::min(extent.length, content.size() - extent.offset) : 0;
      std::memcpy(into.data(), content.data() + extent.offset, there);
      into = into.subspan(extent.length);
      got += there;
    }
    return got;
  }
  Result<Extent> append(std::span<const ByteView> pieces, bool) override {
    const Extent end{disk_.content().size(), pieces[0].size()};
    HF_TRY(write({&end, 1}, pieces[0]));
    return end;
  }
  Result<uint64_t> size() override { return uint64_t(disk_.content().size()); }
  Status sync() override { return disk_.sync(), Status(); }
  Status set_size(uint64_t bytes) override {
    disk_.change(replica_.place().team, [bytes](Bytes& content) { content.resize(bytes); });
    return Status();
  }
  Status close() override { return Status(); }

 private:
  Disk& disk_;
  FakeReplica& replica_;
};

}  // namespace holdfast::file::test
