// Replicas of one rank as threads of a test, and a disk that forgets what a lost one has not synced.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/file_layer.hpp"
#include "redundant/membership/appenders.hpp"
#include "redundant/pieces/pieces.hpp"
#include "redundant/twins/sharing.hpp"

namespace holdfast::file::test {

struct Died {};

// Whose turn it is to append, as the hub has it.
class Turns {
 public:
  std::function<void(int rank, bool waits)> at_wait;
  void begin(uint64_t file, int rank, uint64_t number) {
    std::unique_lock lock(mutex_);
    if (appenders_.ask(file, {rank, number})) return;
    if (at_wait) at_wait(rank, true);
    changed_.wait(lock, [&] { return appenders_.ask(file, {rank, number}); });
    if (at_wait) at_wait(rank, false);
  }
  void end(uint64_t file, int rank, uint64_t number) {
    std::lock_guard lock(mutex_);
    (void)appenders_.over(file, {rank, number});
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  redundant::Appenders appenders_;
};

// Files know no messages.
class ReplicaOfFiles : public redundant::Replica {
 public:
  void decide(uint64_t, ByteSpan answer, Ask ask, void* given) override { ask(given, answer); }
  Known known(uint64_t, Bytes&) override { return Known::mine; }
  void say(uint64_t, ByteView) override {}
  void say_no(uint64_t) override {}
  void before_a_send() override {}
  void wait_a_moment(std::chrono::microseconds) override {}
  [[noreturn]] void differs(const std::string&) override { throw Died(); }
};

// At which act of all a leader dies, and how far it has come; at which piece of all that are given whoever gives it; at which claim of all whoever makes it.
struct Death {
  enum When : uint8_t { never, before, within, after, before_giving, after_giving, before_claiming, after_claiming } when = never;
  int act = 0;
};

// One file of a disk. Each replica reaches it by a way of its own.
class Disk {
 public:
  explicit Disk(bool forgets) : forgets_(forgets) {}
  Bytes content() const {
    std::lock_guard lock(mutex_);
    return now_;
  }
  uint64_t size() const {
    std::lock_guard lock(mutex_);
    return now_.size();
  }
  uint64_t read(std::span<const Extent> extents, ByteSpan into) const {
    std::lock_guard lock(mutex_);
    uint64_t got = 0;
    for (const Extent& extent : extents) {
      const uint64_t there = extent.offset < now_.size() ? std::min(extent.length, now_.size() - extent.offset) : 0;
      std::memcpy(into.data(), now_.data() + extent.offset, there);
      into = into.subspan(extent.length);
      got += there;
    }
    return got;
  }
  void change(int team, std::function<void(Bytes&)> apply) {
    std::lock_guard lock(mutex_);
    if (gone_.contains(team)) return;  // a thread of it was at that, beside the one that died
    apply(now_);
    changes_.push_back({team, false, std::move(apply)});
    ++count_;
  }
  // Behind all that others have put there.
  uint64_t append(int team, ByteView data) {
    std::lock_guard lock(mutex_);
    const uint64_t end = now_.size();
    const auto apply = [at = end, bytes = Bytes(data.begin(), data.end())](Bytes& content) {
      content.resize(std::max(content.size(), at + bytes.size()));
      std::copy(bytes.begin(), bytes.end(), content.begin() + ptrdiff_t(at));
    };
    apply(now_);
    changes_.push_back({team, false, apply});
    ++count_;
    return end;
  }
  // What this team's node has written. What other nodes still have to write they alone can.
  void sync(int team) {
    std::lock_guard lock(mutex_);
    for (Change& change : changes_) change.durable |= change.team == team;
    const auto open = std::find_if(changes_.begin(), changes_.end(), [](const Change& change) { return !change.durable; });
    std::for_each(changes_.begin(), open, [this](const Change& change) { change.apply(settled_); });
    changes_.erase(changes_.begin(), open);
  }
  // Its node has gone, with what the kernel had not written yet.
  void lose(int team) {
    std::lock_guard lock(mutex_);
    gone_.insert(team);
    if (!forgets_) return;
    std::erase_if(changes_, [team](const Change& change) { return change.team == team && !change.durable; });
    now_ = settled_;
    for (const Change& change : changes_) change.apply(now_);
  }
  bool forgets() const { return forgets_; }
  int count() const { return count_; }
  // Calls of the layers above that do not end well, by their number among all.
  std::set<int> faults;
  // From a call on all those of this team: its node's mount is full, or broken.
  int broken_team = -1, broken_from = 0;
  bool reads_less = true;  // a read that is faulty may also end early: buffers take that for the end of the file
  bool is_faulty(int team) {
    std::lock_guard lock(mutex_);
    ++calls_;
    return faults.contains(calls_) || (team == broken_team && calls_ >= broken_from);
  }

 private:
  struct Change {
    int team;
    bool durable;
    std::function<void(Bytes&)> apply;
  };
  const bool forgets_;
  mutable std::mutex mutex_;
  Bytes settled_;  // nobody's loss changes it
  Bytes now_;      // with all changes
  std::vector<Change> changes_;
  std::set<int> gone_;  // teams
  int count_ = 0, calls_ = 0;
};

inline void put(Bytes& content, uint64_t at, ByteView data) {
  if (content.size() < at + data.size()) content.resize(at + data.size());
  std::memcpy(content.data() + at, data.data(), data.size());
}

class Group {
 public:
  Group(int teams, Death death, Disk& disk) : deaths_{death}, disk_(disk) {
    for (int team = 0; team < teams; ++team) meetings_.push_back(std::make_unique<redundant::Meetings>(team, teams));
    living_ = (uint64_t(1) << teams) - 1;
  }
  void also(Death death) { deaths_.push_back(death); }
  bool lives(int team) const { return living_ >> team & 1; }
  int acts() const { return acts_; }
  int given() const { return given_; }
  int claims() const { return claims_; }
  bool stopped() const { return stopped_; }
  size_t waiting_bytes() const {
    size_t bytes = 0;
    for (const redundant::Pieces& pieces : pieces_) bytes += pieces.waiting_bytes();
    return bytes;
  }
  std::function<void()> at_act;      // before each
  std::function<void()> at_death;    // somebody else acts
  std::function<void(int)> at_loss;  // of what else that team's node had
  Turns* turns = nullptr;            // where other ranks append, too
  int rank = 0;

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
    lose(team);
    throw Died();
  }
  // The last one does not die.
  bool strikes(Death::When when, int count) const {
    return std::popcount(living_) > 1 && std::any_of(deaths_.begin(), deaths_.end(), [&](Death one) { return one.when == when && one.act == count; });
  }
  // As the hub does it: the minority is out, and where there is none the job is stopped.
  void judge(int team, const std::vector<std::pair<int, redundant::Claim>>& claims) {
    for (const auto& [one, claim] : claims) {
      const auto same = std::count_if(claims.begin(), claims.end(), [&](const auto& other) { return other.second == claim; });
      if (size_t(same) * 2 <= claims.size()) continue;
      for (const auto& [other, said] : claims)
        if (!(said == claim)) lose(other);
      return is_out(team);
    }
    stopped_ = true;
    changed_.notify_all();
    throw Died();
  }
  void is_out(int team) const {
    if (stopped_ || !lives(team)) throw Died();
  }
  void lose(int team) {
    if (at_death) at_death();
    successions_ += leads(team);
    living_ &= ~(uint64_t(1) << team);
    disk_.lose(team);
    if (at_loss) at_loss(team);
    ++epoch_;
    for (size_t other = 0; other < meetings_.size(); ++other)
      if (lives(int(other))) {
        redundant::Outbox out;
        meetings_[other]->live(uint32_t(epoch_), living_, out);
        route(int(other), out);
      }
    changed_.notify_all();
  }

  bool leads(int team) const { return (living_ & ((uint64_t(1) << team) - 1)) == 0; }

  std::vector<Death> deaths_;
  Disk& disk_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::vector<std::unique_ptr<redundant::Meetings>> meetings_;
  std::vector<redundant::Pieces> pieces_{redundant::most_teams};
  uint64_t living_;
  int acts_ = 0, given_ = 0, claims_ = 0, successions_ = 0, epoch_ = 0;
};

class FakeReplica final : public ReplicaOfFiles, public redundant::Sharing {
 public:
  FakeReplica(Group& group, int team) : group_(group), place_{.team = team, .teams = int(group.meetings_.size())} {}
  const redundant::Place& place() const override { return place_; }
  bool leads() override {
    std::lock_guard lock(group_.mutex_);
    return mine().leads();
  }
  Bytes meet(uint64_t subject, const redundant::Claim& claim, const std::function<std::string()>&, const Act& act) override {
    std::unique_lock lock(group_.mutex_);
    redundant::Outbox out;
    const int number = ++group_.claims_;
    if (group_.strikes(Death::before_claiming, number)) group_.die(place_.team);
    mine().begin(subject, claim, out);
    group_.route(place_.team, out);
    if (group_.strikes(Death::after_claiming, number)) group_.die(place_.team);
    // Whoever wakes tells nobody: two that wait would keep each other awake.
    group_.changed_.notify_all();
    const int successions = group_.successions_;
    for (;;) {
      const auto state = mine().state(subject);
      if (state == redundant::Meetings::State::differ) {
        group_.judge(place_.team, mine().claims(subject));
        continue;
      }
      if (state == redundant::Meetings::State::done) {
        group_.pieces_[size_t(place_.team)].end(subject, mine().number(subject));
        return mine().end(subject);
      }
      if (state != redundant::Meetings::State::act) {
        group_.changed_.wait(lock);
        group_.is_out(place_.team);
        continue;
      }
      const int act_number = ++group_.acts_;
      if (group_.strikes(Death::before, act_number)) group_.die(place_.team);
      tears_ = group_.strikes(Death::within, act_number);
      const bool dies = tears_ || group_.strikes(Death::after, act_number);
      const auto said = mine().claims(subject);
      const bool same = std::all_of(said.begin(), said.end(), [&](const auto& one) { return one.second.view == claim.view; });
      const redundant::Turn turn{.again = successions != group_.successions_, .same_view = same};
      lock.unlock();
      if (group_.at_act) group_.at_act();
      const Bytes outcome = act(turn);
      lock.lock();
      if (dies) group_.die(place_.team);
      mine().finish(subject, outcome, out);
      group_.route(place_.team, out);
      group_.changed_.notify_all();
    }
  }
  Living living() override {
    std::lock_guard lock(group_.mutex_);
    return {group_.living_, uint32_t(group_.epoch_)};
  }
  void give(int team, uint64_t subject, uint64_t index, ByteView head, ByteView bytes) override {
    std::lock_guard lock(group_.mutex_);
    const int number = ++group_.given_;
    if (group_.strikes(Death::before_giving, number)) group_.die(place_.team);
    redundant::Frame frame = redundant::Pieces::frame(subject, mine().number(subject) + 1, index, head, bytes);
    group_.pieces_[size_t(team)].take(std::move(frame), group_.meetings_[size_t(team)]->number(subject));
    group_.changed_.notify_all();
    if (group_.strikes(Death::after_giving, number)) group_.die(place_.team);
  }
  std::optional<Bytes> take(uint64_t subject, uint64_t index, uint32_t epoch) override {
    std::unique_lock lock(group_.mutex_);
    for (;;) {
      if (auto piece = group_.pieces_[size_t(place_.team)].find(subject, mine().number(subject) + 1, index)) return piece;
      if (uint32_t(group_.epoch_) != epoch) return std::nullopt;
      group_.changed_.wait(lock);
      group_.is_out(place_.team);
    }
  }
  void note(const std::string&) override {}
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
  void leaves(bool, int) override {}
  NumberedCall numbered(uint64_t subject) override {
    std::lock_guard lock(group_.mutex_);
    return {subject, mine().number(subject)};
  }
  void begin_append(uint64_t file, uint64_t number) override {
    if (group_.turns) group_.turns->begin(file, group_.rank, number);
  }
  void end_append(uint64_t file, uint64_t number) override {
    if (group_.turns) group_.turns->end(file, group_.rank, number);
  }
  // Between two calls.
  [[noreturn]] void die() {
    std::lock_guard lock(group_.mutex_);
    group_.die(place_.team);
  }
  bool tears() const { return tears_; }

 private:
  redundant::Meetings& mine() { return *group_.meetings_[size_t(place_.team)]; }
  Group& group_;
  const redundant::Place place_;
  std::atomic<bool> tears_{false};  // what it writes now arrives in part
};

class DiskFile final : public FileLayer {
 public:
  DiskFile(Disk& disk, FakeReplica& replica) : disk_(disk), replica_(replica) {}
  Status write(std::span<const Extent> extents, ByteView data) override {
    if (disk_.is_faulty(replica_.place().team)) return write_in_part(extents[0], data);
    for (const Extent& extent : extents) {
      const ByteView all = data.first(extent.length), first = all.first(all.size() / 2), rest = all.subspan(first.size());
      if (is_beside()) write_piece(extent.offset, first), std::this_thread::yield(), write_piece(extent.offset + first.size(), rest);
      else write_piece(extent.offset, replica_.tears() ? first : all);
      data = data.subspan(extent.length);
    }
    return Status();
  }
  // An error, or less than there is.
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override {
    const bool is_faulty = disk_.is_faulty(replica_.place().team);
    if (is_faulty && (extents[0].offset % 2 || !disk_.reads_less)) return failed();
    const uint64_t got = disk_.read(extents, into);
    return is_faulty ? std::min(got, extents[0].length / 2) : got;
  }
  Result<Extent> append(std::span<const ByteView> pieces, bool) override {
    const ByteView all = pieces[0], piece = replica_.tears() ? all.first(all.size() / 2) : all;
    return Extent{disk_.append(replica_.place().team, piece), all.size()};
  }
  Result<uint64_t> size() override { return disk_.size(); }
  Status sync() override { return disk_.is_faulty(replica_.place().team) ? failed() : (disk_.sync(replica_.place().team), Status()); }
  Status set_size(uint64_t bytes) override {
    disk_.change(replica_.place().team, [bytes](Bytes& content) { content.resize(bytes); });
    return Status();
  }
  Status close() override { return Status(); }

 private:
  static Status failed() { return Status(Kind::io, "the device failed", EIO); }
  Status write_in_part(const Extent& extent, ByteView data) {
    write_piece(extent.offset, data.first(extent.length / 2));
    return failed();
  }
  void write_piece(uint64_t at, ByteView piece) {
    disk_.change(replica_.place().team, [at, bytes = Bytes(piece.begin(), piece.end())](Bytes& content) { put(content, at, bytes); });
  }
  // A thread beside the program's, which may die between any two pieces.
  bool is_beside() const { return std::this_thread::get_id() != program_; }

  Disk& disk_;
  FakeReplica& replica_;
  const std::thread::id program_ = std::this_thread::get_id();
};

}  // namespace holdfast::file::test
