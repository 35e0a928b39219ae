#include "layers/buffered/buffered.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "unit/layers/disk_file.hpp"

namespace holdfast::layers {
namespace {

using test::content;
using test::Disk;
using test::DiskFile;
using test::got;
using test::put;

// Time passes when the test says so; what has been put off is done then, in this thread.
class TestClock final : public Background {
 public:
  bool submit(std::function<void()> work) override {
    work_.push_back(std::move(work));
    return true;
  }
  bool submit_after(Milliseconds delay, std::function<Milliseconds()> work) override {
    later_.push_back({now_ + delay, std::move(work)});
    return true;
  }
  Milliseconds now() override { return now_; }
  void do_work() {
    for (auto& work : std::exchange(work_, {})) work();
  }
  void pass(int ms) {
    for (const auto end = now_ + Milliseconds(ms); now_ < end;) {
      ++now_;
      for (Later& due : std::exchange(later_, {})) {
        const Milliseconds again = due.when > now_ ? due.when - now_ : due.work();
        if (again > Milliseconds::zero()) later_.push_back({now_ + again, std::move(due.work)});
      }
    }
  }
  size_t looks_after() const { return later_.size(); }

 private:
  struct Later {
    Milliseconds when;
    std::function<Milliseconds()> work;
  };
  Milliseconds now_{1000};
  std::vector<std::function<void()>> work_;
  std::vector<Later> later_;
};

using Flush = BufferPlan::Flush;

std::unique_ptr<BufferedFile> timed(Disk& disk, Background& clock, bool sync_after = false) {
  return *BufferedFile::make(std::make_unique<DiskFile>(disk), {.buffers = 3, .bytes = 64, .flush_after_ms = 100, .sync_after = sync_after}, clock);
}

std::unique_ptr<BufferedFile> buffered(Disk& disk, int buffers, uint64_t bytes, bool behind = false, uint64_t align = 1) {
  return *BufferedFile::make(std::make_unique<DiskFile>(disk), {buffers, bytes, align, true}, behind ? background_thread() : no_background());
}

TEST(Buffered, SmallWritesGoBelowAsWholeBuffers) {
  Disk disk;
  auto file = buffered(disk, 2, 64);
  std::string all;
  for (int i = 0; i < 100; ++i) {
    const std::string piece(7, char('a' + i % 26));
    ASSERT_TRUE(put(*file, all.size(), piece).ok());
    all += piece;
  }
  ASSERT_TRUE(file->sync().ok());
  EXPECT_EQ(content(disk), all);
  EXPECT_TRUE(disk.synced);
  EXPECT_EQ(disk.calls.size(), (all.size() + 63) / 64);
  for (const test::Call& call : disk.calls) EXPECT_EQ(call.extent.offset % 64, 0u);
  EXPECT_EQ(file->counts().writes_below, disk.calls.size());
  EXPECT_GE(file->counts().gathered, 100u);
}

TEST(Buffered, BuffersAreRoundedUpToRows) {
  Disk disk;
  auto file = buffered(disk, 1, 50, false, 40);
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(put(*file, uint64_t(i) * 10, "0123456789").ok());
  ASSERT_TRUE(file->flush().ok());
  ASSERT_EQ(disk.calls.size(), 2u);
  EXPECT_EQ(disk.calls[0].extent, (Extent{0, 80}));
  EXPECT_EQ(disk.calls[1].extent, (Extent{80, 80}));
}

TEST(Buffered, LargeWritesAreNotCopied) {
  Disk disk;
  auto file = buffered(disk, 2, 16);
  ASSERT_TRUE(put(*file, 16, std::string(64, 'x')).ok());
  ASSERT_EQ(disk.calls.size(), 1u);
  EXPECT_EQ(disk.calls[0].extent, (Extent{16, 64}));
}

TEST(Buffered, AReadSeesWhatWasWrittenAndZerosBetween) {
  Disk disk;
  auto file = buffered(disk, 2, 32);
  ASSERT_TRUE(put(*file, 40, "later").ok());
  EXPECT_EQ(*file->size(), 45u);
  EXPECT_EQ(got(*file, 36, 100), std::string(4, '\0') + "later");
  EXPECT_TRUE(disk.bytes.empty());
  EXPECT_EQ(got(*file, 50, 5), "");
}

TEST(Buffered, ReadsInOrderAreReadAheadAndOthersAreNot) {
  Disk disk;
  for (int i = 0; i < 4 << 20; ++i) disk.bytes.push_back(uint8_t(i * 31 >> 3));
  auto file = buffered(disk, 4, 1 << 20);
  for (uint64_t at = 0; at < disk.bytes.size(); at += 512)
    ASSERT_EQ(got(*file, at, 512), std::string(disk.bytes.begin() + long(at), disk.bytes.begin() + long(at) + 512));
  EXPECT_LE(file->counts().reads_below, 12u);
  auto other = buffered(disk, 4, 1 << 20);
  for (int i = 0; i < 5; ++i) (void)got(*other, uint64_t(5 - i) << 19, 10);
  EXPECT_EQ(other->counts().reads_below, 5u);
  EXPECT_EQ(disk.calls.back().extent.length, 10u);
}

TEST(Buffered, WritingThroughKeepsNothing) {
  Disk disk;
  auto file = buffered(disk, 2, 64);
  ASSERT_TRUE(put(*file, 0, "kept").ok());
  ASSERT_TRUE(file->write_through().ok());
  EXPECT_EQ(content(disk), "kept");
  ASSERT_TRUE(put(*file, 4, "+").ok());
  EXPECT_EQ(content(disk), "kept+");
  disk.bytes[0] = 'K';
  EXPECT_EQ(got(*file, 0, 9), "Kept+");
}

TEST(Buffered, ForgettingShowsWhatOthersWrote) {
  Disk disk;
  disk.bytes.assign(200, 'a');
  auto file = buffered(disk, 2, 64);
  (void)got(*file, 0, 10), (void)got(*file, 10, 10);
  disk.bytes[15] = 'b';
  EXPECT_EQ(got(*file, 15, 1), "a") << "close-to-open: it was read before";
  ASSERT_TRUE(file->forget().ok());
  EXPECT_EQ(got(*file, 15, 1), "b");
}

TEST(Buffered, AFailedDelayedWriteIsToldOnceToEachAndKept) {
  Disk disk;
  disk.full = true;
  auto file = buffered(disk, 2, 8, true);
  uint64_t first = 0, second = 0;
  ASSERT_TRUE(put(*file, 0, "0123").ok());
  ASSERT_TRUE(put(*file, 4, "4567").ok()) << "delayed";
  EXPECT_EQ(file->flush().kind(), Kind::no_space);
  EXPECT_EQ(file->failure_since(first).kind(), Kind::no_space);
  EXPECT_TRUE(file->failure_since(first).ok());
  EXPECT_EQ(file->failure_since(second).kind(), Kind::no_space);
  EXPECT_EQ(got(*file, 0, 8), "01234567");
  disk.full = false;
  ASSERT_TRUE(file->sync().ok());
  EXPECT_EQ(content(disk), "01234567");
}

TEST(Buffered, AFullDiskIsTheErrorOfTheCallThatNeedsRoom) {
  Disk disk;
  disk.full = true;
  auto file = buffered(disk, 2, 8);
  ASSERT_TRUE(put(*file, 0, "a").ok());
  ASSERT_TRUE(put(*file, 8, "b").ok());
  EXPECT_EQ(put(*file, 16, "c").kind(), Kind::no_space);
  EXPECT_EQ(*file->size(), 9u) << "nothing of the third is there";
  EXPECT_EQ(file->close().kind(), Kind::no_space);
}

TEST(Buffered, AFullBufferGoesOutAtOnceOrStaysForRewritingUntilItsPlaceIsNeeded) {
  for (const Flush flush : {Flush::when_full, Flush::when_needed}) {
    Disk disk;
    TestClock clock;
    auto file = *BufferedFile::make(std::make_unique<DiskFile>(disk), {.buffers = 2, .bytes = 8, .flush = flush}, clock);
    const auto put_now = [&](uint64_t at, std::string_view text) {
      ASSERT_TRUE(put(*file, at, text).ok());
      clock.do_work();
    };
    for (int again = 0; again < 5; ++again) put_now(0, "0123"), put_now(4, "4567");
    EXPECT_EQ(disk.writes, flush == Flush::when_full ? 5 : 0);
    put_now(8, "a"), put_now(16, "b");
    EXPECT_EQ(disk.writes, flush == Flush::when_full ? 5 : 1);
    EXPECT_EQ(disk.calls.back().extent, (Extent{0, 8}));
    EXPECT_EQ(content(disk), "01234567");
    ASSERT_TRUE(file->close().ok());
    EXPECT_EQ(content(disk), std::string("01234567a\0\0\0\0\0\0\0b", 17));
  }
}

TEST(Buffered, WhatHasWaitedForTheGivenTimeIsWritten) {
  Disk disk;
  TestClock clock;
  auto file = timed(disk, clock);
  ASSERT_TRUE(put(*file, 0, "abc").ok());
  clock.pass(60);
  ASSERT_TRUE(put(*file, 100, "def").ok());
  clock.pass(39);
  EXPECT_EQ(disk.writes, 0);
  clock.pass(1);
  EXPECT_EQ(content(disk), "abc" + std::string(97, '\0') + "def");
  EXPECT_FALSE(disk.synced) << "it outlives the process without";
  EXPECT_EQ(file->counts().preflushes, 2u);
  clock.pass(1000);
  EXPECT_EQ(disk.writes, 2);
  EXPECT_EQ(clock.looks_after(), 0u) << "nothing waits, nobody looks";
  ASSERT_TRUE(put(*file, 3, "+").ok());
  clock.pass(100);
  EXPECT_EQ(content(disk).substr(0, 4), "abc+");
}

TEST(Buffered, NothingWaitsTwiceAsLongBecauseASyncCameBetween) {
  Disk disk;
  TestClock clock;
  auto file = timed(disk, clock);
  ASSERT_TRUE(put(*file, 0, "a").ok());
  clock.pass(50);
  ASSERT_TRUE(file->sync().ok());
  ASSERT_TRUE(put(*file, 1, "b").ok());
  clock.pass(99);
  EXPECT_EQ(content(disk), "a");
  clock.pass(1);
  EXPECT_EQ(content(disk), "ab");
}

TEST(Buffered, WhatOutlivesTheProcessByASyncAloneIsSyncedInTime) {
  Disk disk;
  TestClock clock;
  auto file = timed(disk, clock, true);
  ASSERT_TRUE(put(*file, 0, "abc").ok());
  ASSERT_TRUE(file->flush().ok());
  EXPECT_FALSE(disk.synced);
  clock.pass(100);
  EXPECT_TRUE(disk.synced) << "written below is not enough";
  ASSERT_TRUE(put(*file, 64, std::string(64, 'x')).ok());  // a whole buffer's, which goes below at once
  EXPECT_FALSE(disk.synced);
  clock.pass(100);
  EXPECT_TRUE(disk.synced);
}

TEST(Buffered, ATimedWriteThatFailsIsToldOnceAndGoesWithTheNext) {
  Disk disk;
  TestClock clock;
  disk.full = true;
  auto file = timed(disk, clock);
  uint64_t seen = 0;
  ASSERT_TRUE(put(*file, 0, "abc").ok());
  clock.pass(1000);
  EXPECT_EQ(disk.writes, 1) << "a full disk is not tried again and again";
  EXPECT_EQ(file->failure_since(seen).kind(), Kind::no_space);
  EXPECT_TRUE(file->failure_since(seen).ok());
  disk.full = false;
  ASSERT_TRUE(put(*file, 3, "d").ok());
  clock.pass(100);
  EXPECT_EQ(content(disk), "abcd");
}

TEST(Buffered, AFileThatIsGoneIsNotLookedAfter) {
  Disk disk;
  TestClock clock;
  auto file = timed(disk, clock);
  ASSERT_TRUE(put(*file, 0, "abc").ok());
  ASSERT_TRUE(file->close().ok());
  file.reset();
  ASSERT_EQ(clock.looks_after(), 1u);
  clock.pass(100);
  EXPECT_EQ(clock.looks_after(), 0u);
  EXPECT_EQ(content(disk), "abc");
}

TEST(Buffered, TheThreadWritesInTimeWhileOthersWriteAndFilesComeAndGo) {
  for (int round = 0; round < 20; ++round) {
    Disk disk;
    auto file = *BufferedFile::make(std::make_unique<DiskFile>(disk), {.buffers = 2, .bytes = 64, .flush_after_ms = 1, .sync_after = round % 2 == 1},
                                    background_thread());
    std::string all;
    for (int i = 0; i < 300; ++i) {
      ASSERT_TRUE(put(*file, all.size(), "piece").ok());
      all += "piece";
      if (i % 100 == 50) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (i % 40 == 7) {
        ASSERT_EQ(got(*file, all.size() - 5, 5), "piece");
      }
    }
    if (round % 3) {
      ASSERT_TRUE(file->close().ok());
      ASSERT_EQ(content(disk), all);
    }
    file.reset();
    for (size_t i = 0; i < disk.bytes.size(); ++i) ASSERT_TRUE(disk.bytes[i] == 0 || disk.bytes[i] == uint8_t(all[i])) << "a part, and nothing else";
  }
}

TEST(Buffered, WhatIsWrittenOnceArrivesWithoutAnotherCall) {
  Disk disk;
  auto file = *BufferedFile::make(std::make_unique<DiskFile>(disk), {.buffers = 2, .bytes = 64, .flush_after_ms = 1}, background_thread());
  ASSERT_TRUE(put(*file, 0, "abc").ok());
  while (*DiskFile(disk).size() == 0) std::this_thread::yield();  // for ever, where it does not
  ASSERT_TRUE(file->close().ok());
  EXPECT_EQ(content(disk), "abc");
}

// Writes what was begun when it is asked for it, and not before. Nothing else may come meanwhile.
class Beginner final : public FileLayer, public BegunWrites {
 public:
  explicit Beginner(Disk& disk) : file_(disk) {}
  Status begin_write(std::span<const Extent> extents, ByteView data) override {
    HF_TRY(end_write());
    under_way_ = extents[0], data_ = data;
    return Status();
  }
  Status end_write() override {
    const auto ended = std::exchange(under_way_, std::nullopt);
    return ended ? file_.write({&*ended, 1}, data_) : Status();
  }
  Status write(std::span<const Extent> extents, ByteView data) override { return alone().write(extents, data); }
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override { return alone().read(extents, into); }
  Result<uint64_t> size() override { return alone().size(); }
  Result<Extent> append(std::span<const ByteView> pieces, bool durable) override { return alone().append(pieces, durable); }
  Status sync() override { return alone().sync(); }
  Status set_size(uint64_t bytes) override { return alone().set_size(bytes); }
  Status close() override { return alone().close(); }

 private:
  FileLayer& alone() {
    EXPECT_FALSE(under_way_) << "a call below beside a write that is under way";
    return file_;
  }
  DiskFile file_;
  std::optional<Extent> under_way_;
  ByteView data_;
};

std::unique_ptr<BufferedFile> beginning(Disk& disk, const BufferPlan& plan) {
  auto below = std::make_unique<Beginner>(disk);
  BegunWrites* const begun = below.get();
  return *BufferedFile::make(std::move(below), plan, no_background(), begun);
}

TEST(Buffered, AFullBufferIsBegunBelowAndTheNextOneHearsWhatHasComeOfIt) {
  Disk disk;
  auto file = beginning(disk, {.buffers = 3, .bytes = 16});
  uint64_t seen = 0;
  ASSERT_TRUE(put(*file, 0, "0123456789").ok());
  ASSERT_TRUE(put(*file, 10, "abcdef+").ok());
  EXPECT_EQ(content(disk), "") << "it is under way";
  EXPECT_EQ(got(*file, 0, 16), "0123456789abcdef") << "its bytes are read here";
  ASSERT_TRUE(put(*file, 17, std::string(15, '.')).ok());
  EXPECT_EQ(content(disk), "0123456789abcdef");
  EXPECT_EQ(*file->size(), 32u);
  EXPECT_EQ(disk.bytes.size(), 32u);
  EXPECT_EQ(file->counts().preflushes, 2u);
  disk.fail_write = disk.writes;
  ASSERT_TRUE(put(*file, 32, std::string(8, 'x')).ok());
  ASSERT_TRUE(put(*file, 40, std::string(8, 'x')).ok()) << "it fails later";
  EXPECT_TRUE(file->failure_since(seen).ok());
  ASSERT_TRUE(put(*file, 48, std::string(8, 'y')).ok());
  ASSERT_TRUE(put(*file, 56, std::string(8, 'y')).ok());
  EXPECT_EQ(file->failure_since(seen).sys_errno(), ENOSPC);
  EXPECT_TRUE(file->failure_since(seen).ok());
  ASSERT_TRUE(file->close().ok());
  EXPECT_EQ(content(disk).substr(32), std::string(16, 'x') + std::string(16, 'y'));
}

TEST(Buffered, ABufferThatIsUnderWayIsNotChanged) {
  Disk disk;
  auto file = beginning(disk, {.buffers = 2, .bytes = 8});
  ASSERT_TRUE(put(*file, 0, "abcd").ok());
  ASSERT_TRUE(put(*file, 4, "efgh").ok());
  ASSERT_TRUE(put(*file, 2, "X").ok());
  EXPECT_EQ(content(disk), "abcdefgh") << "it has ended before";
  ASSERT_TRUE(file->flush().ok());
  EXPECT_EQ(content(disk), "abXdefgh");
}

// Random calls against a vector; then the same with each of the writes below failing once.
class Model {
 public:
  enum Way : uint8_t { at_once, behind, begun };
  static Way of(uint32_t seed) { return seed % 2 ? behind : seed / 4 % 2 ? begun : at_once; }
  Model(uint32_t seed, Way way, int fail) : random_(seed) {
    disk_.fail_write = fail;
    const int buffers = 1 + int(random_() % 4);
    const uint64_t bytes = 1 + random_() % 40, align = 1 + random_() % 20;
    const BufferPlan plan{.buffers = buffers,
                          .bytes = bytes,
                          .align = align,
                          .flush = seed % 4 < 2 ? Flush::when_full : Flush::when_needed,
                          .flush_after_ms = seed % 3 ? 0u : 1u,
                          .sync_after = seed % 5 == 0};
    if (way == begun) file_ = beginning(disk_, plan);
    else file_ = *BufferedFile::make(std::make_unique<DiskFile>(disk_), plan, way == behind ? background_thread() : no_background());
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) step();
    may_fail([&] { return file_->sync(); });
    EXPECT_EQ(disk_.bytes, model_);
    EXPECT_TRUE(file_->close().ok());
  }
  int writes() const { return disk_.writes; }

 private:
  void step() {
    const uint64_t at = random_() % 3 ? next_ : random_() % 300, count = random_() % 60;
    next_ = at + count;
    switch (random_() % 12) {
      case 0: return resize(random_() % 300);
      case 1: return may_fail([&] { return file_->flush(); });
      case 2: return may_fail([&] { return file_->forget(); });
      case 3: return may_fail([&] { return file_->sync(); });
      case 4:
      case 5:
      case 6:
      case 7: return check(at, count);
      default: return write(at, count);
    }
  }
  // One failure below may come out of any call; the call is then made again.
  template <class F>
  void may_fail(F call) {
    if (call().ok()) return;
    EXPECT_TRUE(call().ok());
  }
  void resize(uint64_t bytes) {
    may_fail([&] { return file_->set_size(bytes); });
    model_.resize(bytes);
  }
  void write(uint64_t at, uint64_t count) {
    std::vector<uint8_t> data(count);
    for (auto& byte : data) byte = uint8_t(random_());
    const Extent extents[2] = {{at, count / 2}, {at + count / 2, count - count / 2}};
    may_fail([&] { return file_->write(extents, std::as_bytes(std::span(data))); });
    if (count && model_.size() < at + count) model_.resize(at + count);
    std::copy(data.begin(), data.end(), model_.begin() + long(std::min<size_t>(at, model_.size())));
  }
  void check(uint64_t at, uint64_t count) {
    EXPECT_EQ(*file_->size(), model_.size());
    std::vector<uint8_t> data(count, 0xee);
    const Extent extent{at, count};
    Result<uint64_t> read(Kind::internal, "");
    may_fail([&] { return (read = file_->read(std::span(&extent, 1), std::as_writable_bytes(std::span(data)))).status(); });
    const uint64_t there = at < model_.size() ? std::min<uint64_t>(count, model_.size() - at) : 0;
    ASSERT_EQ(*read, there);
    EXPECT_TRUE(std::equal(data.begin(), data.begin() + long(there), model_.begin() + long(std::min<size_t>(at, model_.size()))));
    for (size_t i = there; i < count; ++i) ASSERT_EQ(data[i], 0xee) << "bytes past the end are left alone";
  }

  std::mt19937 random_;
  Disk disk_;
  std::unique_ptr<BufferedFile> file_;
  std::vector<uint8_t> model_;
  uint64_t next_ = 0;
};

TEST(Buffered, RandomCallsAreThoseOfAnArray) {
  for (uint32_t seed = 0; seed < 400 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Model(seed, Model::of(seed), -1).run(120);
  }
}

TEST(Buffered, AnyWriteBelowMayFailOnceAndNothingIsLost) {
  for (uint32_t seed = 0; seed < 12 && !::testing::Test::HasFailure(); ++seed) {
    Model whole(seed, Model::at_once, -1);
    whole.run(60);
    for (int fail = 0; fail < whole.writes(); ++fail) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", write " + std::to_string(fail));
      Model(seed, Model::of(seed), fail).run(60);
    }
  }
}

}  // namespace
}  // namespace holdfast::layers
