// Parts in a real directory that a job has left: wherever it was killed, what is joined is the file after some of its writes.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "file/coordinated/coordinated.hpp"
#include "file/left_parts.hpp"
#include "file/part_files.hpp"
#include "layers/plain/plain_file.hpp"
#include "unit/file/fake_twins.hpp"

namespace holdfast::file::test {
namespace {

namespace fs = std::filesystem;

class Left : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("holdfast-parts-" + std::to_string(::getpid()));
    fs::remove_all(directory_);
    fs::create_directory(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string path() const { return (directory_ / "file").string(); }
  Bytes content() const {
    std::ifstream in(path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto* const at = reinterpret_cast<const std::byte*>(text.data());
    return {at, at + text.size()};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(directory_)) all.push_back(entry.path().filename().string());
    std::sort(all.begin(), all.end());
    return all;
  }

  // What the file is after each write, as one process by itself leaves it. A small one may join what was written before.
  using States = std::vector<Bytes>;
  static void write_some(std::mt19937_64& random, FileLayer* file, Bytes& model, bool is_last) {
    const uint64_t bytes = random() % 5 == 0 && !is_last ? 10 + random() % 500 : 70000 + random() % 100000;
    const Extent extents[2] = {{random() % 300000, bytes / 3}, {700000 + random() % 300000, bytes - bytes / 3}};
    Bytes data(bytes);
    for (std::byte& byte : data) byte = std::byte(random());
    put(model, extents[0].offset, ByteView(data).first(extents[0].length));
    put(model, extents[1].offset, ByteView(data).subspan(extents[0].length));
    const Status done = file ? file->write(extents, data) : Status();
    EXPECT_TRUE(done.ok());
  }
  // Replicas that write so often and are gone then, as by a kill.
  States leave(int teams, uint64_t seed, int writes) {
    Disk disk(false);
    Group group(teams, {}, disk);
    const raw::Fd made(::open(path().c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644));
    States states(1);
    std::mt19937_64 random(seed);
    for (int i = 0; i < writes; ++i) states.push_back(states.back()), write_some(random, nullptr, states.back(), i + 1 == writes);
    std::vector<std::thread> threads;
    for (int team = 0; team < teams; ++team)
      threads.emplace_back([&, team] {
        FakeReplica replica(group, team);
        const raw::Fd own(::open(path().c_str(), O_RDWR | O_CLOEXEC));
        const auto file = coordinated(layers::plain_file(own.get(), path()), replica, 1, path(),
                                      {ReadProtocol::simple, WriteProtocol::distributed_separate}, std::make_unique<PartFiles>(own.get(), team, 0));
        std::mt19937_64 mine(seed);
        Bytes model;
        for (int i = 0; i < writes; ++i) write_some(mine, file.get(), model, i + 1 == writes);
      });
    for (std::thread& thread : threads) thread.join();
    return states;
  }
  static bool goes_on(uint64_t) { return true; }

  fs::path directory_;
};

TEST_F(Left, are_found_and_joined) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const States states = leave(2 + int(seed % 2), seed, 6);
    EXPECT_TRUE(has_left_parts(path()));
    const auto left = left_parts(path());
    ASSERT_TRUE(left);
    ASSERT_EQ(left->size(), 1u);
    const LeftParts& one = left->front();
    EXPECT_TRUE(one.lacking.ok()) << one.lacking.sentence();
    EXPECT_FALSE(one.in_use || one.torn);
    const auto now = fs::status(path());
    EXPECT_TRUE(one.note.main.known());
    // Once it is stopped, and begins anew.
    EXPECT_FALSE(join_left(one, path(), [](uint64_t) { return false; }).ok());
    EXPECT_TRUE(join_left(one, path(), goes_on).ok());
    EXPECT_EQ(content(), states.back()) << "seed " << seed;
    EXPECT_EQ(names(), std::vector<std::string>{"file"});
    EXPECT_EQ(fs::status(path()).permissions(), now.permissions());
  }
}

TEST_F(Left, that_are_torn_at_any_place_leave_a_state_of_the_file) {
  constexpr int writes = 3;
  int torn = 0, lacking = 0;
  for (int cut = 0; cut < 24; ++cut) {
    const States states = leave(2, 3, writes);
    auto left = left_parts(path());
    ASSERT_TRUE(left && left->size() == 1);
    const std::string part = part_of_team(left->front().path, cut % 2);
    const uint64_t bytes = fs::file_size(part);
    fs::resize_file(part, bytes - std::min<uint64_t>(bytes, uint64_t(cut / 2) * bytes / 11));
    left = left_parts(path());
    ASSERT_TRUE(left);
    const LeftParts& one = left->front();
    lacking += !one.lacking.ok(), torn += one.torn;
    if (one.lacking.ok()) {
      ASSERT_TRUE(join_left(one, path(), goes_on).ok());
      const Bytes now = content();
      const Bytes &before = states[one.writes], &after = states[std::min<size_t>(one.writes + 1, states.size() - 1)];
      ASSERT_LE(now.size(), after.size());
      for (size_t at = 0; at < now.size(); ++at)
        ASSERT_TRUE((at < before.size() ? now[at] == before[at] : now[at] == std::byte(0)) || (one.torn && now[at] == after[at]))
            << cut << " at " << at;
    } else {
      ASSERT_TRUE(discard_left(one).ok());
    }
    EXPECT_EQ(names(), std::vector<std::string>{"file"});
  }
  EXPECT_GT(torn, 3);
  EXPECT_GT(lacking, 3);
}

TEST_F(Left, of_a_file_that_was_renamed_are_its_own) {
  const States states = leave(2, 5, 4);
  fs::rename(path(), directory_ / "other");
  const auto left = left_parts((directory_ / "other").string());
  ASSERT_TRUE(left);
  ASSERT_EQ(left->size(), 1u);
  fs::rename(directory_ / "other", path());
  std::ofstream(directory_ / "third") << "somebody else's";
  const auto none = left_parts((directory_ / "third").string());
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  EXPECT_EQ(files_with_left_parts(directory_.string()), std::vector<std::string>{"file"});
}

TEST_F(Left, that_somebody_writes_are_in_use) {
  (void)leave(2, 6, 3);
  const auto left = left_parts(path());
  ASSERT_TRUE(left && !left->empty());
  const int held = ::open(part_of_team(left->front().path, 1).c_str(), O_RDONLY);
  ASSERT_EQ(raw::flock(held, 1 /* LOCK_SH */), 0);
  EXPECT_TRUE(left_parts(path())->front().in_use);
  ::close(held);
  EXPECT_FALSE(left_parts(path())->front().in_use);
}

TEST_F(Left, a_note_that_is_not_whole_stands_for_nothing) {
  const States states = leave(2, 7, 3);
  const auto left = left_parts(path());
  ASSERT_TRUE(left && !left->empty());
  fs::resize_file(left->front().path, 100);
  EXPECT_TRUE(left_parts(path())->empty());
  EXPECT_FALSE(has_left_parts(path()));
}

}  // namespace
}  // namespace holdfast::file::test
