// Where each replica has a node of its own and writes a chunk of each call, a node that was lost took its chunk along: the others wrote again only what a
// lost leader had written. A sync was the leader's alone, and the other nodes still had their chunks. What was written again was not what the first read
// after the loss answered.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <thread>

#include "file/coordinated/coordinated.hpp"
#include "unit/file/fake_twins.hpp"

namespace holdfast::file::test {
namespace {

constexpr uint64_t big = 300000;
using Calls = std::function<void(FileLayer&)>;

void write(FileLayer& file, uint64_t at, uint64_t bytes, char value) {
  const Extent extent{at, bytes};
  EXPECT_TRUE(file.write({&extent, 1}, Bytes(bytes, std::byte(value))).ok());
}
void sync(FileLayer& file) { EXPECT_TRUE(file.sync().ok()); }
const Bytes all_written(big, std::byte('a'));

// Both replicas make the first calls, then one of them is lost, and the other one goes on: what the file is then.
Bytes content_after(const Calls& both, const Calls& survivor, int lost = 1, WriteProtocol protocol = WriteProtocol::distributed) {
  Disk disk(true);
  Group group(2, {}, disk);
  FakeReplica replicas[] = {{group, 0}, {group, 1}};
  std::promise<void> gone;
  const auto run = [&](int team) {
    FakeReplica& replica = replicas[team];
    const auto file = coordinated(std::make_unique<DiskFile>(disk, replica), replica, 17, "file", {ReadProtocol::simple, protocol});
    both(*file);
    if (team != lost) return gone.get_future().wait(), survivor(*file);
    try {
      replica.die();
    } catch (const Died&) {
      gone.set_value();
    }
  };
  std::thread first(run, 0), second(run, 1);
  first.join(), second.join();
  return disk.content();
}

TEST(LostChunk, of_a_follower_is_written_by_the_leader) {
  const auto both = [](FileLayer& file) { write(file, 0, big, 'a'); };
  EXPECT_TRUE(content_after(both, sync) == all_written);
}

TEST(LostChunk, does_not_come_over_what_the_leader_has_written_since) {
  const auto both = [](FileLayer& file) { write(file, 0, big, 'a'), write(file, big / 2, 100, 'b'); };
  Bytes expected = all_written;
  std::fill_n(expected.begin() + big / 2, 100, std::byte('b'));
  EXPECT_TRUE(content_after(both, sync) == expected);
}

TEST(LostChunk, is_none_after_a_sync) {
  const auto both = [](FileLayer& file) { write(file, 0, big, 'a'), sync(file); };
  EXPECT_TRUE(content_after(both, [](FileLayer&) {}) == all_written);
}

TEST(LostChunk, is_there_for_the_read_that_comes_next) {
  for (const int lost : {0, 1})
    for (const WriteProtocol protocol : {WriteProtocol::simple, WriteProtocol::distributed}) {
      Bytes into(big);
      const auto survivor = [&](FileLayer& file) {
        const Extent extent{0, big};
        const auto got = file.read({&extent, 1}, into);
        EXPECT_EQ(got ? *got : 0, big);
      };
      (void)content_after([](FileLayer& file) { write(file, 0, big, 'a'); }, survivor, lost, protocol);
      EXPECT_TRUE(into == all_written) << lost << name_of(protocol);
    }
}

}  // namespace
}  // namespace holdfast::file::test
