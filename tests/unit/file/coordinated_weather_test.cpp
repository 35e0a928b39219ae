// One file and several replicas in bad weather: two deaths, calls below that fail or end early, or always do in one team, a flipped bit. What comes of a
// call is the same in all who live, and the file is what these calls have made of it. More by hand: SIM_SEED=FIRST SIM_SCHEDULES=COUNT.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "file/coordinated/coordinated.hpp"
#include "layers/buffered/buffered.hpp"
#include "unit/file/fake_parts.hpp"
#include "unit/file/some_program.hpp"

namespace holdfast::file::test {
namespace {

constexpr uint64_t weather_subject = 17, big = 300000;

// What a file may hold after calls of which some have failed: these have made it old or new, at each byte.
class Model {
 public:
  void write(std::span<const Extent> extents, ByteView data, bool ok) {
    for (const Extent& extent : extents) {
      const ByteView piece = data.first(extent.length);
      const uint64_t end = extent.offset + extent.length;
      changes_.push_back({extent.offset, Bytes(piece.begin(), piece.end()), ok});
      if (ok) put(sure_, extent.offset, piece), least_ = std::max(least_, end);
      most_ = std::max(most_, end);
      data = data.subspan(extent.length);
    }
  }
  void set_size(uint64_t bytes) {
    changes_.push_back({.at = bytes, .cuts = true});
    sure_.resize(std::min<uint64_t>(bytes, sure_.size()));
    least_ = most_ = bytes;
  }
  // They may be there all the same, behind the end that it had.
  void fails_to_append(ByteView data) {
    changes_.push_back({.at = least_, .bytes = Bytes(data.begin(), data.end()), .ok = false, .anywhere = true});
    most_ += data.size();
  }
  // As it is known by now.
  void has_size(uint64_t bytes) {
    EXPECT_GE(bytes, least_);
    EXPECT_LE(bytes, most_);
    least_ = most_ = bytes;
  }
  void synced() { synced_ = changes_.size(); }
  // Where something was cut off since the last sync, what was done since then may have been done once more in part: older bytes over newer ones, behind an
  // older end.
  void ends_unsynced() {
    const auto first = changes_.begin() + ptrdiff_t(synced_);
    ends_unsynced_ = std::any_of(first, changes_.end(), [](const Change& change) { return change.cuts; });
    if (!ends_unsynced_) return;
    for (auto change = first; change != changes_.end(); ++change) {
      if (change->cuts) least_ = std::min(least_, change->at);
      most_ = std::max(most_, change->at + change->bytes.size());
    }
  }
  void is_at(uint64_t at, std::byte byte) const {
    if (byte == (at < sure_.size() ? sure_[at] : std::byte(0))) return;
    EXPECT_TRUE(may_be(at, byte)) << "byte " << at << " is " << int(byte);
  }
  void is(const Bytes& content) {
    has_size(content.size());
    for (uint64_t at = 0; at < content.size() && !testing::Test::HasFailure(); ++at) is_at(at, content[at]);
  }

 private:
  struct Change {
    uint64_t at = 0;
    Bytes bytes = {};
    bool ok = true, cuts = false, anywhere = false;  // cuts: nothing is behind it then; anywhere: at that place or behind it
    bool covers(uint64_t byte) const { return byte >= at && (cuts || anywhere || byte < at + bytes.size()); }
    bool may_have_put(std::byte byte, uint64_t there) const {
      if (anywhere) return std::find(bytes.begin(), bytes.end(), byte) != bytes.end();
      return byte == (cuts ? std::byte(0) : bytes[there - at]);
    }
  };
  // From the newest change back to one that is sure.
  bool may_be(uint64_t at, std::byte byte) const {
    bool is_sure = false;
    for (size_t i = changes_.size(); i-- > 0;) {
      const Change& change = changes_[i];
      const bool is_unsynced = ends_unsynced_ && i >= synced_;
      if (is_sure && !is_unsynced) return false;
      if (!change.covers(at)) continue;
      if (change.may_have_put(byte, at)) return true;
      is_sure |= change.ok;
    }
    return !is_sure && byte == std::byte(0);
  }

  Bytes sure_;  // as it is where no call has failed
  std::vector<Change> changes_;
  size_t synced_ = 0;  // of them
  bool ends_unsynced_ = false;
  uint64_t least_ = 0, most_ = 0;  // the size
};

// Writes down what a program is told, and what the file may hold then.
class Recorder final : public FileLayer {
 public:
  Recorder(FileLayer& file, int flips_at) : file_(file), flips_at_(flips_at) {}
  Status write(std::span<const Extent> extents, ByteView data) override {
    const Bytes given = flipped(data);
    const Status status = file_.write(extents, given);
    said += status.ok() ? "w" : "w" + std::to_string(status.sys_errno());
    model.write(extents, data, status.ok());
    return status;
  }
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override {
    const auto got = file_.read(extents, into);
    said +=
        got ? "r" + std::to_string(*got) + "." + std::to_string(coding::plain_checksum(into, *got)) : "r!" + std::to_string(got.status().sys_errno());
    uint64_t left = got ? *got : 0, at = 0;
    for (const Extent& extent : extents)
      for (uint64_t i = 0; i < extent.length && left > 0; ++i, --left) model.is_at(extent.offset + i, into[at++]);
    return got;
  }
  Result<Extent> append(std::span<const ByteView> pieces, bool durable) override {
    const Bytes given = flipped(pieces[0]);
    const ByteView piece(given);
    const auto place = file_.append({&piece, 1}, durable);
    said += place ? "a" + std::to_string(place->offset) + "+" + std::to_string(place->length) : "a!";
    if (place) model.has_size(place->offset), model.write({&*place, 1}, pieces[0], true);
    else model.fails_to_append(pieces[0]);
    return place;
  }
  Result<uint64_t> size() override {
    const auto bytes = file_.size();
    said += bytes ? "s" + std::to_string(*bytes) : "s!";
    if (bytes) model.has_size(*bytes);
    return bytes;
  }
  Status sync() override {
    const Status status = file_.sync();
    said += status.ok() ? "S" : "S" + std::to_string(status.sys_errno());
    if (status.ok()) model.synced();
    return status;
  }
  Status set_size(uint64_t bytes) override {
    const Status status = file_.set_size(bytes);
    said += status.ok() ? "c" : "c!";
    if (status.ok()) model.set_size(bytes);
    return status;
  }
  Status close() override {
    const Status status = file_.close();
    said += status.ok() ? "e" : "e!";
    if (!status.ok()) model.ends_unsynced();
    is_whole = status.ok();
    return status;
  }
  std::string said;
  bool is_whole = false;
  Model model;

 private:
  Bytes flipped(ByteView data) {
    Bytes given(data.begin(), data.end());
    if (++changes_ == flips_at_) given[given.size() / 2] ^= std::byte(4);
    return given;
  }
  FileLayer& file_;
  const int flips_at_;
  int changes_ = 0;
};

struct Weather {
  explicit Weather(uint64_t seed) {
    std::mt19937_64 random(seed);
    teams = 2 + int(random() % 2);
    forgets = random() % 2;
    protocols = {ReadProtocol(unsigned(ReadProtocol::simple) + random() % 6), WriteProtocol(unsigned(WriteProtocol::simple) + random() % 3), nullptr,
                 5 * big / 2};
    large = random() % 8 == 0 ? big : 0;
    const auto death = [&] { return Death{Death::When(1 + random() % 7), int(1 + random() % 60)}; };
    switch (random() % 3) {
      case 0: first = death(), second = death(); break;
      case 1:
        for (int i = 0; i < 4; ++i) faults.insert(int(1 + random() % 40));
        if (random() % 2 && !forgets) first = death();
        if (seed % 2 == 0) faults.clear(), broken_team = int(seed / 2 % uint64_t(teams)), broken_from = int(1 + seed / 6 % 20);
        break;
      default: flips = int(random() % uint64_t(teams)), flips_at = int(1 + random() % 4);
    }
  }
  std::string text() const {
    std::string all = std::to_string(teams) + " teams, " + name_of(protocols.read) + ", " + name_of(protocols.write) + (forgets ? ", forgets" : "");
    for (const Death& death : {first, second})
      if (death.when != Death::never) all += ", death " + std::to_string(death.when) + " at " + std::to_string(death.act);
    if (broken_team >= 0) all += ", team " + std::to_string(broken_team) + " broken from " + std::to_string(broken_from);
    for (const int fault : faults) all += ", fault " + std::to_string(fault);
    return all + (flips < 0 ? "" : ", flip in " + std::to_string(flips)) + (large ? ", large" : "");
  }
  int teams = 0, flips = -1, flips_at = 0, broken_team = -1, broken_from = 0;
  bool forgets = false;
  Protocols protocols;
  uint64_t large = 0;
  Death first, second;
  std::set<int> faults;
};

struct Came {
  int lost = 0, failed = 0, broken = 0, stopped = 0, out = 0;
};

void check_schedule(uint64_t seed, Came& came) {
  const Weather weather(seed);
  Disk disk(weather.forgets);
  disk.faults = weather.faults, disk.broken_team = weather.broken_team, disk.broken_from = weather.broken_from;
  PartsDisk parts_disk(weather.forgets);
  Group group(weather.teams, weather.first, disk);
  group.also(weather.second);
  group.at_loss = [&parts_disk](int team) { parts_disk.lose(team); };
  std::vector<std::unique_ptr<FakeReplica>> replicas;
  std::vector<std::unique_ptr<Recorder>> records(size_t(weather.teams));
  for (int team = 0; team < weather.teams; ++team) replicas.push_back(std::make_unique<FakeReplica>(group, team));
  std::vector<std::thread> threads;
  for (size_t team = 0; team < size_t(weather.teams); ++team)
    threads.emplace_back([&, team] {
      FakeReplica& replica = *replicas[team];
      auto parts = weather.protocols.write == WriteProtocol::distributed_separate ? std::make_unique<FakeParts>(parts_disk, replica) : nullptr;
      const auto file = coordinated(std::make_unique<DiskFile>(disk, replica), replica, weather_subject, "file", weather.protocols, std::move(parts));
      records[team] = std::make_unique<Recorder>(*file, int(team) == weather.flips ? weather.flips_at : 0);
      try {
        (void)run_program(*records[team], seed, weather.large);
      } catch (const Died&) {
      }
    });
  for (std::thread& thread : threads) thread.join();
  Recorder* first = nullptr;
  for (int team = 0; team < weather.teams; ++team) {
    Recorder& record = *records[size_t(team)];
    came.lost += !group.lives(team), came.out += !group.lives(team) && team == weather.flips;
    if (!group.lives(team)) continue;
    if (!first) first = &record;
    EXPECT_EQ(first->said, record.said);
  }
  came.stopped += group.stopped();
  const bool failed = first->said.find('!') != std::string::npos || first->said.find("w5") != std::string::npos;
  came.failed += failed, came.broken += failed && weather.broken_team >= 0;
  EXPECT_EQ(group.stopped(), weather.flips >= 0 && weather.teams == 2 && group.stopped());
  const bool may_be_in_parts = weather.protocols.write == WriteProtocol::distributed_separate && !first->is_whole;
  if (!may_be_in_parts) first->model.is(disk.content());
  if (std::getenv("SIM_TRACE")) std::printf("%s\n%s\n", weather.text().c_str(), first->said.c_str());
}

// A program that writes in order, in small pieces, and looks about now and then.
std::string write_in_order(layers::BufferedFile& file, Recorder& record, uint64_t seed) {
  std::mt19937_64 random(seed);
  uint64_t at = 0, seen = 0;
  for (int i = 0; i < 60; ++i) {
    const Bytes data = some_bytes(random, 9);
    const Extent extent{at, data.size()}, place{random() % 100, 9};
    Bytes into(9);
    const ByteView piece(data);
    switch (random() % 20) {
      case 0: (void)record.read({&place, 1}, into); break;
      case 1: (void)record.size(); break;
      case 2: (void)record.sync(); break;
      case 3: at = random() % 100; break;
      case 4: (void)record.set_size(random() % 100); break;
      case 5: (void)record.append({&piece, 1}, false); break;
      case 6: record.said += file.flush().ok() ? "F" : "F!"; break;
      default: (void)record.write({&extent, 1}, data); at += data.size();
    }
    if (!file.failure_since(seen).ok()) record.said += "!";
  }
  (void)record.close();
  return record.said;
}

struct BufferedWeather {
  explicit BufferedWeather(uint64_t seed) {
    std::mt19937_64 random(seed);
    teams = 2 + int(random() % 2), buffers = 1 + int(random() % 3);
    forgets = random() % 2;
    protocols = {ReadProtocol(unsigned(ReadProtocol::simple) + random() % 2), WriteProtocol::simple, nullptr, 70};
    const auto death = [&] { return Death{Death::When(1 + random() % 7), int(1 + random() % 40)}; };
    if (random() % 3 > 0) first = death(), second = death();
    else if (!forgets && random() % 2) broken_team = int(random() % uint64_t(teams)), broken_from = int(1 + random() % 20);
    else if (!forgets)
      for (int i = 0; i < 4; ++i) faults.insert(int(1 + random() % 30));
  }
  int teams = 0, buffers = 0, broken_team = -1, broken_from = 0;
  bool forgets = false;
  Protocols protocols;
  Death first, second;
  std::set<int> faults;
};

// Full buffers are begun below: what is under way when a leader is lost, or fails, is written by all that the program does next.
void check_begun_writes(uint64_t seed, Came& came, uint64_t& begun) {
  const BufferedWeather weather(seed);
  Disk disk(weather.forgets);
  disk.faults = weather.faults, disk.broken_team = weather.broken_team, disk.broken_from = weather.broken_from, disk.reads_less = false;
  Group group(weather.teams, weather.first, disk);
  group.also(weather.second);
  std::vector<std::unique_ptr<FakeReplica>> replicas;
  std::vector<std::unique_ptr<Recorder>> records(size_t(weather.teams));
  for (int team = 0; team < weather.teams; ++team) replicas.push_back(std::make_unique<FakeReplica>(group, team));
  std::vector<uint64_t> each_begun(size_t(weather.teams));
  std::vector<std::thread> threads;
  for (size_t team = 0; team < size_t(weather.teams); ++team)
    threads.emplace_back([&, team] {
      FakeReplica& replica = *replicas[team];
      auto below = coordinated(std::make_unique<DiskFile>(disk, replica), replica, weather_subject, "file", weather.protocols, nullptr,
                               seed % 3 ? layers::background_thread() : layers::no_background());
      layers::BegunWrites* const writes = below->begun_writes();
      std::unique_ptr<layers::BufferedFile> file;
      try {
        file = *layers::BufferedFile::make(std::move(below), {.buffers = weather.buffers, .bytes = 16}, layers::no_background(), writes);
        records[team] = std::make_unique<Recorder>(*file, 0);
        (void)write_in_order(*file, *records[team], seed);
        each_begun[team] = file->counts().preflushes;
      } catch (const Died&) {
      }
    });
  for (std::thread& thread : threads) thread.join();
  Recorder* first = nullptr;
  for (int team = 0; team < weather.teams; ++team) {
    came.lost += !group.lives(team);
    if (!group.lives(team)) continue;
    if (!first) first = records[size_t(team)].get(), begun += each_begun[size_t(team)];
    EXPECT_EQ(first->said, records[size_t(team)]->said);
  }
  came.failed += first->said.find('!') != std::string::npos;
  if (first->is_whole) first->model.is(disk.content());
  if (std::getenv("SIM_TRACE")) std::printf("%s\n", first->said.c_str());
}

uint64_t number_in(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(CoordinatedWeather, calls_have_one_outcome_and_the_file_is_what_they_have_made_of_it) {
  const uint64_t from = number_in("SIM_SEED", 1), count = number_in("SIM_SCHEDULES", 1000);
  Came came;
  for (uint64_t seed = from; seed < from + count; ++seed) {
    check_schedule(seed, came);
    ASSERT_FALSE(HasFailure()) << "seed " << seed << ": " << Weather(seed).text();
  }
  if (count < 1000) return;
  EXPECT_GT(came.lost, 200);
  EXPECT_GT(came.failed, 100);
  EXPECT_GT(came.broken, 30);
  EXPECT_GT(came.stopped, 50);
  EXPECT_GT(came.out, 50);
}

TEST(CoordinatedWeather, a_write_that_is_under_way_has_one_outcome) {
  const uint64_t from = number_in("SIM_SEED", 1), count = number_in("SIM_SCHEDULES", 1000);
  Came came;
  uint64_t begun = 0;
  for (uint64_t seed = from; seed < from + count; ++seed) {
    check_begun_writes(seed, came, begun);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  if (count < 1000) return;
  EXPECT_GT(came.lost, 200);
  EXPECT_GT(came.failed, 50);
  EXPECT_GT(begun, 4000u);
}

}  // namespace
}  // namespace holdfast::file::test
