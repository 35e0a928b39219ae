// Ranks that append to one file, each with replicas, lose a leader before, within or after any of its acts, while another rank is between any two of its own.
// A place was set aside by zeros. The next leader took another rank's for its own, or did not know its own any more: lines were lost, and holes stayed.
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <sstream>
#include <thread>

#include "file/coordinated/coordinated.hpp"
#include "unit/file/fake_twins.hpp"

namespace holdfast::file::test {
namespace {

constexpr int lines = 3;
constexpr auto soon = std::chrono::seconds(20);

// The other rank's acts wait here.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_ || left_ > 0; });
    --waiting_;
    if (!open_) --left_;
  }
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // It makes so many, where it can.
  void let_through(int acts) {
    std::unique_lock lock(mutex_);
    left_ += acts;
    changed_.notify_all();
    EXPECT_TRUE(changed_.wait_for(lock, soon, [this] { return open_ || is_held_up_ || (left_ == 0 && waiting_ > 0); }));
  }
  // It has ended, or waits for somebody.
  void is_held_up(bool yes) {
    std::lock_guard lock(mutex_);
    is_held_up_ = yes;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int left_ = 0, waiting_ = 0;
  bool open_ = false, is_held_up_ = false;
};

struct Schedule {
  int teams = 2;
  Death death;       // of rank 0's leader
  int before = 0;    // acts of rank 1 before all of rank 0's
  int at_death = 0;  // and when rank 0's leader has died
  Death other = {};  // of rank 1's leader
};

struct Left {
  std::string content;
  int acts = 0;
};

void append_lines(FileLayer& file) {
  for (int i = 0; i < lines; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    const ByteView piece = std::as_bytes(std::span(line.data(), line.size()));
    const auto place = file.append({&piece, 1}, false);
    EXPECT_TRUE(place && place->length == line.size());
  }
  EXPECT_TRUE(file.close().ok());
}

Left run(const Schedule& schedule) {
  Disk disk(false);
  Gate gate;
  std::vector<std::unique_ptr<Group>> ranks;
  ranks.push_back(std::make_unique<Group>(schedule.teams, schedule.death, disk));
  ranks.push_back(std::make_unique<Group>(schedule.teams, schedule.other, disk));
  ranks[1]->at_act = [&] { gate.pass(); };
  Turns turns;
  turns.at_wait = [&](int rank, bool waits) { rank == 0 ? gate.open() : gate.is_held_up(waits); };
  for (size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank]->turns = &turns, ranks[rank]->rank = int(rank);
  ranks[0]->at_death = [&] { gate.let_through(schedule.at_death); };
  std::vector<std::unique_ptr<FakeReplica>> replicas;
  for (const auto& rank : ranks)
    for (int team = 0; team < schedule.teams; ++team) replicas.push_back(std::make_unique<FakeReplica>(*rank, team));
  const auto start = [&](int rank, int team) {
    return std::thread([&, rank, team] {
      FakeReplica& replica = *replicas[size_t(rank * schedule.teams + team)];
      try {
        append_lines(*coordinated(std::make_unique<DiskFile>(disk, replica), replica, uint64_t(rank), "log"));
        if (rank == 1) gate.is_held_up(true);
      } catch (const Died&) {
      }
    });
  };
  std::vector<std::thread> others, threads;
  for (int team = 0; team < schedule.teams; ++team) others.push_back(start(1, team));
  gate.let_through(schedule.before);
  for (int team = 0; team < schedule.teams; ++team) threads.push_back(start(0, team));
  for (std::thread& thread : threads) thread.join();
  gate.open();
  for (std::thread& thread : others) thread.join();
  const Bytes content = disk.content();
  return {{reinterpret_cast<const char*>(content.data()), content.size()}, ranks[0]->acts()};
}

std::map<std::string, int> lines_of(const std::string& content) {
  std::map<std::string, int> found;
  std::istringstream text(content);
  for (std::string line; std::getline(text, line);) ++found[line];
  return found;
}

void look_at(const Schedule& schedule) {
  const Left left = run(schedule);
  std::map<std::string, int> wanted;
  for (int i = 0; i < lines; ++i) wanted["line " + std::to_string(i)] = 2;
  EXPECT_EQ(lines_of(left.content), wanted) << "rank 0 dies at act " << schedule.death.act << ", " << int(schedule.death.when) << "; rank 1 makes "
                                            << schedule.before << " acts before and " << schedule.at_death << " then, and dies at its act "
                                            << schedule.other.act;
}

TEST(LinesOfSeveralRanks, are_there_once_wherever_a_leader_is_lost) {
  const int acts = run({}).acts;
  ASSERT_GT(acts, lines);
  for (int act = 1; act <= acts; ++act)
    for (const Death::When when : {Death::before, Death::within, Death::after})
      for (const int before : {0, 1, 2})
        for (const int at_death : {0, 1, 2, 3, 4}) {
          look_at({2, {when, act}, before, at_death});
          if (HasFailure()) return;
        }
}

// A team takes all its ranks along.
TEST(LinesOfSeveralRanks, are_there_once_where_both_leaders_are_lost) {
  const int acts = run({}).acts;
  for (int act = 1; act <= acts; ++act)
    for (int other = 1; other <= acts; ++other)
      for (const Death::When when : {Death::before, Death::within, Death::after}) {
        look_at({3, {Death::within, act}, 1, other, {when, other}});
        if (HasFailure()) return;
      }
}

}  // namespace
}  // namespace holdfast::file::test
