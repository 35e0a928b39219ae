// The log of one process and its stage: on a directory, whose process is killed, and in memory, where writes fail.
#include "layers/shared_records/record_log.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <random>

#include "layers/shared_records/log_scan.hpp"
#include "target/directory.hpp"
#include "target/filters.hpp"
#include "target/memory.hpp"
#include "unit/target/directory_fixture.hpp"

namespace holdfast::layers {
namespace {

constexpr char log_name[] = "log";
constexpr Staging quick{16 << 10, 3};

std::shared_ptr<Shelf> shelf_on(std::shared_ptr<target::Target> target) {
  return std::make_shared<Shelf>(std::vector<Shelf::Holder>{{std::move(target), nullptr, "logs/"}}, 1, "here");
}
std::shared_ptr<Shelf> shelf_at(const std::string& path) { return shelf_on(target::open_directory(path).value()); }

// Sizes from nothing to more than a stage takes.
Bytes payload_of(uint64_t number) {
  std::mt19937_64 random(number);
  Bytes bytes(number % 17 == 16 ? random() % 40000 : random() % 900);
  for (std::byte& b : bytes) b = std::byte(random());
  return bytes;
}
layout::Entry entry_of(uint64_t number) {
  layout::Entry entry;
  entry.session = 7;
  entry.id = number;
  return entry;
}

// How many entries are there; each must be whole and in its turn.
uint64_t found_in(const Shelf& shelf, uint64_t* torn = nullptr) {
  auto log = LeftLog::open(shelf, std::string(log_name) + ".0");
  if (!log) return 0;
  uint64_t found = 0;
  const Status status = (*log)->scan([&](const ScannedEntry& entry) {
    EXPECT_EQ(entry.entry.id, found);
    auto payload = (*log)->payload(entry);
    EXPECT_TRUE(payload.ok() && *payload == payload_of(entry.entry.id)) << "entry " << entry.entry.id;
    ++found;
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.sentence();
  if (torn) *torn = (*log)->torn();
  else EXPECT_EQ((*log)->torn(), 0u);
  return found;
}

TEST(RecordLog, of_a_killed_process_has_every_entry_that_was_appended) {
  for (const char* parent : {"/dev/shm", "/var/tmp"}) {
    if (access(parent, W_OK) != 0) continue;
    for (uint64_t count : {1, 2, 3, 4, 40, 700}) {
      SCOPED_TRACE(std::string(parent) + ", " + std::to_string(count) + " entries");
      std::string path = std::string(parent) + "/holdfast-log-XXXXXX";
      ASSERT_NE(mkdtemp(path.data()), nullptr);
      const pid_t child = fork();
      if (child == 0) {
        RecordLog log(shelf_at(path), log_name, 0, quick);
        for (uint64_t i = 0; i < count; ++i)
          if (!log.append(entry_of(i), payload_of(i)).ok()) _exit(1);
        raise(SIGKILL);
      }
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
      EXPECT_EQ(found_in(*shelf_at(path)), count);
      EXPECT_TRUE(target::open_directory(path).value()->remove_directory("logs").ok());
      rmdir(path.c_str());
    }
  }
}

TEST(RecordLog, reads_back_what_is_on_the_stage_and_what_has_left_it) {
  auto memory = std::make_shared<target::MemoryDirectory>();
  RecordLog log(shelf_on(target::make_memory_target(memory, "m")), log_name, 0, quick);
  std::vector<uint64_t> places;
  for (uint64_t i = 0; i < 200; ++i) {
    auto done = log.append(entry_of(i), payload_of(i));
    ASSERT_TRUE(done.ok());
    places.push_back(done->position);
    for (uint64_t k : {uint64_t(0), i / 2, i}) {
      Bytes there(payload_of(k).size());
      ASSERT_TRUE(log.read(places[k] + layout::entry_header_bytes, there).ok());
      ASSERT_EQ(there, payload_of(k)) << k << " after " << i;
    }
  }
  // From the first to beyond the last in one piece: the end of it reads as zeros.
  Bytes all(log.end() + 64);
  ASSERT_TRUE(log.read(0, all).ok());
  for (uint64_t i = 0; i < 200; ++i)
    EXPECT_EQ(std::memcmp(all.data() + places[i] + layout::entry_header_bytes, payload_of(i).data(), payload_of(i).size()), 0);
  EXPECT_TRUE(std::all_of(all.end() - 64, all.end(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(RecordLog, keeps_what_it_has_taken_when_the_device_is_full) {
  auto memory = std::make_shared<target::MemoryDirectory>();
  memory->set_capacity(64 << 10);
  auto shelf = shelf_on(target::make_memory_target(memory, "m"));
  RecordLog log(shelf, log_name, 0, quick);
  uint64_t taken = 0;
  Status status;
  for (; status.ok(); taken += status.ok()) status = log.append(entry_of(taken), payload_of(taken)).status();
  EXPECT_EQ(status.kind(), Kind::no_space) << status.sentence();
  EXPECT_GT(taken, 20u);
  EXPECT_EQ(found_in(*shelf), taken);
  EXPECT_FALSE(log.append(entry_of(taken), payload_of(taken)).ok());
  memory->set_capacity(10 << 20);
  for (; taken < 300; ++taken) ASSERT_TRUE(log.append(entry_of(taken), payload_of(taken)).ok());
  EXPECT_EQ(found_in(*shelf), taken);
}

TEST(RecordLog, that_cannot_be_mapped_is_written_entry_by_entry) {
  auto memory = std::make_shared<target::MemoryDirectory>();
  memory->set_mappable(false);
  auto plan = std::make_shared<target::FaultPlan>();
  auto shelf = shelf_on(target::make_filtered(target::make_memory_target(memory, "m"), plan));
  RecordLog log(shelf, log_name, 0, quick);
  for (uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(log.append(entry_of(i), payload_of(i)).ok());
  EXPECT_EQ(plan->calls(target::CallKind::write), 50u);
  EXPECT_EQ(plan->calls(target::CallKind::map), 1u);
  EXPECT_EQ(found_in(*shelf), 50u);
}

TEST(RecordLog, says_that_an_entry_on_the_stage_is_damaged_and_has_those_behind_it) {
  auto memory = std::make_shared<target::MemoryDirectory>();
  auto shelf = shelf_on(target::make_memory_target(memory, "m"));
  RecordLog log(shelf, log_name, 0, {64 << 10, 1});
  Bytes same(100, std::byte{5});
  for (uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(log.append(entry_of(i), same).ok());
  for (uint64_t damaged = 0; damaged < 5; ++damaged) {
    const auto before = memory->snapshot();
    // The stage begins at a page; entries of 104 + 100 bytes lie 208 apart.
    ASSERT_TRUE(memory->flip_bit("logs/log.0", (4096 + damaged * 208 + 110) * 8));
    auto left = LeftLog::open(*shelf, "log.0").value();
    std::vector<uint64_t> ids;
    ASSERT_TRUE(left->scan([&](const ScannedEntry& e) { return ids.push_back(e.entry.id), Status(); }).ok());
    EXPECT_EQ(ids.size(), 4u);
    EXPECT_EQ(left->torn(), 1u);
    memory->restore(before);
  }
}

}  // namespace
}  // namespace holdfast::layers
