#include "layers/appended/appended.hpp"

#include <gtest/gtest.h>

#include <linux/falloc.h>

#include "layers/buffered/buffered.hpp"
#include "unit/layers/disk_file.hpp"

namespace holdfast::layers {
namespace {

using test::content;
using test::Disk;
using test::DiskFile;
using test::got;
using test::put;

std::unique_ptr<AppendedFile> appended(Disk& disk, uint64_t most = 1000, bool durable_close = true) {
  return AppendedFile::make(std::make_unique<DiskFile>(disk), most, durable_close);
}

Result<Extent> add(FileLayer& file, std::string_view text, bool durable = false) {
  const ByteView piece = std::as_bytes(std::span(text));
  return file.append({&piece, 1}, durable);
}

TEST(Appended, WhatIsAppendedWaitsAndIsSeenInTheSize) {
  Disk disk;
  auto file = appended(disk);
  ASSERT_TRUE(put(*file, 0, "head ").ok());
  EXPECT_EQ(*add(*file, "one "), (Extent{5, 4}));
  EXPECT_EQ(*add(*file, "two"), (Extent{9, 3}));
  EXPECT_EQ(content(disk), "head ");
  EXPECT_EQ(*file->size(), 12u);
}

// Another opener has appended meanwhile: what waited comes behind it.
TEST(Appended, AReadGivesItsPlaceBehindWhatOthersHaveAppended) {
  Disk disk;
  auto file = appended(disk);
  ASSERT_TRUE(add(*file, "mine").ok());
  DiskFile others(disk);
  ASSERT_TRUE(add(others, "theirs ").ok());
  EXPECT_EQ(got(*file, 0, 100), "theirs mine");
  EXPECT_EQ(disk.appends, 2);
}

TEST(Appended, EveryCallButSizeAndAppendGivesItsPlaceFirst) {
  const auto after = [](auto call) {
    Disk disk;
    auto file = appended(disk);
    EXPECT_TRUE(add(*file, "waits").ok());
    call(*file);
    return content(disk);
  };
  EXPECT_EQ(after([](FileLayer& file) { (void)put(file, 5, "!"); }), "waits!");
  EXPECT_EQ(after([](FileLayer& file) { (void)file.set_size(2); }), "wa");
  EXPECT_EQ(after([](FileLayer& file) { (void)file.sync(); }), "waits");
  EXPECT_EQ(after([](FileLayer& file) { (void)file.close(); }), "waits");
  EXPECT_EQ(after([](FileLayer& file) { (void)file.zero({1, 2}); }), std::string("w\0\0ts", 5));
  EXPECT_EQ(after([](FileLayer& file) { (void)file.next(FileLayer::Stretch::hole, 0); }), "waits");
  EXPECT_EQ(after([](FileLayer& file) { (void)file.allocate(0, {0, 7}); }), std::string("waits\0\0", 7));
}

TEST(Appended, TooMuchDoesNotWait) {
  Disk disk;
  auto file = appended(disk, 6);
  ASSERT_TRUE(add(*file, "four").ok());
  EXPECT_EQ(content(disk), "");
  ASSERT_TRUE(add(*file, "more").ok());
  EXPECT_EQ(content(disk), "fourmore");
}

TEST(Appended, NothingWaitsWhereOthersShareTheDescriptor) {
  Disk disk;
  auto file = appended(disk);
  file->place_at_once();
  ASSERT_TRUE(add(*file, "line\n").ok());
  EXPECT_EQ(content(disk), "line\n");
}

TEST(Appended, ADurableAppendIsDurableWhenItReturns) {
  Disk disk;
  auto file = appended(disk);
  ASSERT_TRUE(add(*file, "entry", true).ok());
  EXPECT_EQ(content(disk), "entry");
  EXPECT_TRUE(disk.synced);
}

TEST(Appended, AFastCloseDoesNotWaitForTheDevice) {
  Disk disk;
  auto file = appended(disk, 1000, false);
  ASSERT_TRUE(add(*file, "entry").ok());
  ASSERT_TRUE(file->close().ok());
  EXPECT_EQ(content(disk), "entry");
  EXPECT_FALSE(disk.synced);
  EXPECT_TRUE(disk.closed);
}

// Kept, it could go to another's place later on.
TEST(Appended, WhatCannotBePlacedIsToldOnceAndDropped) {
  Disk disk;
  auto file = appended(disk);
  ASSERT_TRUE(add(*file, "lost").ok());
  disk.full = true;
  EXPECT_EQ(file->sync().kind(), Kind::no_space);
  disk.full = false;
  EXPECT_TRUE(file->sync().ok());
  EXPECT_EQ(content(disk), "");
  EXPECT_EQ(*file->size(), 0u);
}

// What buffers keep of the file's end goes below first, and what they have read of it is asked for anew.
TEST(Appended, BuffersBelowAreNotInTheWay) {
  Disk disk;
  auto buffered = BufferedFile::make(std::make_unique<DiskFile>(disk), {.buffers = 2, .bytes = 64}, no_background());
  auto file = AppendedFile::make(std::move(*buffered), 1000, true);
  ASSERT_TRUE(put(*file, 0, "buffered ").ok());
  EXPECT_EQ(content(disk), "");
  ASSERT_TRUE(add(*file, "appended").ok());
  EXPECT_EQ(got(*file, 0, 100), "buffered appended");
  EXPECT_EQ(content(disk), "buffered appended");
}

// --- what every layer answers, where it knows nothing better

TEST(FileLayer, AllOfAFileIsDataUpToTheHoleAtItsEnd) {
  Disk disk;
  DiskFile file(disk);
  ASSERT_TRUE(put(file, 0, "12345").ok());
  EXPECT_EQ(*file.next(FileLayer::Stretch::data, 3), 3u);
  EXPECT_EQ(*file.next(FileLayer::Stretch::hole, 3), 5u);
  EXPECT_EQ(file.next(FileLayer::Stretch::data, 5).status().sys_errno(), ENXIO);
}

TEST(FileLayer, AllocationZeroesAndExtendsAsItsModeSays) {
  Disk disk;
  DiskFile file(disk);
  ASSERT_TRUE(put(file, 0, "12345").ok());
  ASSERT_TRUE(file.allocate(FALLOC_FL_KEEP_SIZE, {0, 9}).ok());
  EXPECT_EQ(content(disk), "12345");
  ASSERT_TRUE(file.allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, {3, 9}).ok());
  EXPECT_EQ(content(disk), std::string("123\0\0", 5));
  ASSERT_TRUE(file.allocate(FALLOC_FL_ZERO_RANGE, {1, 5}).ok());
  EXPECT_EQ(content(disk), std::string("1\0\0\0\0\0", 6));
}

TEST(FileLayer, ZerosOfAnyLengthAreWritten) {
  Disk disk;
  DiskFile file(disk);
  ASSERT_TRUE(file.zero({1, (2 << 20) + 3}).ok());
  EXPECT_EQ(disk.bytes.size(), size_t(2 << 20) + 4);
  EXPECT_EQ(disk.calls.size(), 3u);
}

}  // namespace
}  // namespace holdfast::layers
