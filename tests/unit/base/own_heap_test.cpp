#include "base/own_heap.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace holdfast {
namespace {

// Each block has bytes of its own, at its alignment, whatever comes and goes in between.
TEST(OwnHeap, blocks_do_not_overlap) {
  OwnHeap heap;
  std::mt19937 random(1);
  struct Block {
    unsigned char* bytes;
    size_t size;
    unsigned char value;
  };
  std::vector<Block> blocks;
  const auto is_whole = [](const Block& block) {
    for (size_t i = 0; i < block.size; ++i)
      if (block.bytes[i] != block.value) return false;
    return true;
  };
  for (int turn = 0; turn < 20000; ++turn) {
    if (blocks.size() > 200 || (!blocks.empty() && random() % 3 == 0)) {
      const size_t which = random() % blocks.size();
      ASSERT_TRUE(is_whole(blocks[which]));
      heap.release(blocks[which].bytes);
      blocks[which] = blocks.back();
      blocks.pop_back();
      continue;
    }
    const size_t size = random() % (size_t(1) << random() % 19), alignment = size_t(16) << random() % 9;
    auto* bytes = static_cast<unsigned char*>(heap.allocate(size, alignment));
    ASSERT_TRUE(bytes && OwnHeap::holds(bytes) && uintptr_t(bytes) % alignment == 0);
    blocks.push_back({bytes, size, static_cast<unsigned char>(turn)});
    std::memset(bytes, blocks.back().value, size);
  }
  for (const Block& block : blocks) ASSERT_TRUE(is_whole(block));
}

TEST(OwnHeap, every_size_fits_into_its_class) {
  OwnHeap heap;
  for (size_t size = 0; size < 5000; ++size) {
    auto* one = static_cast<unsigned char*>(heap.allocate(size, 16));
    auto* two = static_cast<unsigned char*>(heap.allocate(size, 16));
    ASSERT_TRUE(one + size <= two || two + size <= one) << size;
  }
}

// Files are buffered in 16 MiB: opened and closed for days they take no more room.
TEST(OwnHeap, what_is_released_is_taken_again) {
  OwnHeap heap;
  std::map<void*, int> places;
  for (int turn = 0; turn < 1000; ++turn) {
    void* block = heap.allocate(size_t(16) << 20, size_t(2) << 20);
    ASSERT_TRUE(block);
    ++places[block];
    heap.release(block);
  }
  EXPECT_EQ(places.size(), 1u);
}

// Where the region has no more room, malloc(3) may have some; the same where the kernel has no memory.
TEST(OwnHeap, has_none_where_it_cannot_have_any) {
  OwnHeap heap;
  EXPECT_EQ(heap.allocate(size_t(1) << 43, 16), nullptr);
  EXPECT_EQ(heap.allocate(SIZE_MAX, 16), nullptr);
  EXPECT_FALSE(OwnHeap::holds(&heap));
  EXPECT_FALSE(OwnHeap::holds(nullptr));
}

// A second one finds the places taken, and goes on behind them.
TEST(OwnHeap, goes_round_what_is_there_already) {
  OwnHeap one, other;
  void *first = one.allocate(1, 16), *second = other.allocate(1, 16);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first, second);
}

TEST(OwnHeap, threads_share_it) {
  OwnHeap heap;
  const auto work = [&heap](unsigned char value) {
    for (int turn = 0; turn < 20000; ++turn) {
      auto* block = static_cast<unsigned char*>(heap.allocate(64, 16));
      std::memset(block, value, 64);
      for (int i = 0; i < 64; ++i) ASSERT_EQ(block[i], value);
      heap.release(block);
    }
  };
  std::thread one(work, 1), other(work, 2);
  one.join();
  other.join();
}

}  // namespace
}  // namespace holdfast
