// A Typemap against the plain list of bytes that it stands for, over random nested patterns.
#include "frontend/typemap.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

namespace holdfast::frontend {
namespace {

// A Typemap and what it means: the displacement of every data byte, in order.
struct Pattern {
  Typemap map;
  std::vector<int64_t> bytes;
};

class Patterns {
 public:
  explicit Patterns(uint32_t seed) : random_(seed) {}

  int64_t below(int64_t limit) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit)); }

  Pattern make(int depth) {
    Pattern pattern = depth == 0 ? basic() : repeated(make(depth - 1));
    const int64_t ub = pattern.bytes.empty() ? 0 : *std::max_element(pattern.bytes.begin(), pattern.bytes.end()) + 1;
    pattern.map.set_bounds(0, std::max<int64_t>(ub, 1) + below(7));
    pattern.map.finish();
    return pattern;
  }

 private:
  Pattern basic() {
    const int64_t length = 1 + below(8);
    Pattern pattern;
    pattern.map.add({0, static_cast<uint64_t>(length), 1, 0, Basic::raw});
    for (int64_t i = 0; i < length; ++i) pattern.bytes.push_back(i);
    return pattern;
  }

  // A few groups of copies, at any distance: also touching, also backwards.
  Pattern repeated(const Pattern& child) {
    Pattern pattern;
    int64_t at = below(5);
    for (int64_t group = 1 + below(3); group > 0; --group) {
      const int64_t count = below(4), stride = child.map.extent() + below(3) * below(9);
      pattern.map.repeat(child.map, at, static_cast<uint64_t>(count), stride);
      for (int64_t i = 0; i < count; ++i)
        for (int64_t byte : child.bytes) pattern.bytes.push_back(at + i * stride + byte);
      at += count * stride + below(4) - (below(10) == 0 ? 20 : 0);
    }
    return pattern;
  }

  std::mt19937 random_;
};

int64_t meaning(const Pattern& pattern, uint64_t position) {
  const uint64_t size = pattern.bytes.size();
  return static_cast<int64_t>(position / size) * pattern.map.extent() + pattern.bytes[position % size];
}

TEST(Typemap, walks_every_part_of_its_tiling_in_type_map_order) {
  for (uint32_t seed = 0; seed < 600; ++seed) {
    Patterns patterns(seed);
    const Pattern pattern = patterns.make(static_cast<int>(seed % 4));
    ASSERT_EQ(pattern.map.size(), pattern.bytes.size()) << "seed " << seed;
    if (pattern.bytes.empty()) continue;
    const uint64_t from = static_cast<uint64_t>(patterns.below(3 * pattern.bytes.size()));
    const uint64_t bytes = static_cast<uint64_t>(patterns.below(3 * pattern.bytes.size()));
    std::vector<int64_t> walked;
    pattern.map.walk(from, bytes, [&](int64_t disp, uint64_t length, uint64_t count, int64_t stride) {
      for (uint64_t i = 0; i < count; ++i)
        for (uint64_t b = 0; b < length; ++b) walked.push_back(disp + static_cast<int64_t>(i) * stride + static_cast<int64_t>(b));
    });
    ASSERT_EQ(walked.size(), bytes) << "seed " << seed;
    for (uint64_t i = 0; i < bytes; ++i) ASSERT_EQ(walked[i], meaning(pattern, from + i)) << "seed " << seed << " byte " << i;
  }
}

TEST(Typemap, knows_whether_it_ascends_and_overlaps) {
  for (uint32_t seed = 0; seed < 600; ++seed) {
    Patterns patterns(seed);
    const Pattern pattern = patterns.make(static_cast<int>(seed % 4));
    if (pattern.bytes.empty()) continue;
    bool ascends = true;
    std::set<int64_t> seen;
    bool twice = false, twice_in_one = false;
    for (uint64_t i = 0; i < 6 * pattern.bytes.size(); ++i) {
      if (i > 0 && meaning(pattern, i) <= meaning(pattern, i - 1)) ascends = false;
      twice |= !seen.insert(meaning(pattern, i)).second;
      twice_in_one |= twice && i < pattern.bytes.size();
    }
    EXPECT_EQ(pattern.map.ascending(), ascends) << "seed " << seed;
    EXPECT_EQ(pattern.map.tiles_overlap(), twice) << "seed " << seed;
    EXPECT_EQ(pattern.map.overlaps(), twice_in_one) << "seed " << seed;
  }
}

TEST(Typemap, counts_the_data_before_an_offset) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Patterns patterns(seed);
    const Pattern pattern = patterns.make(static_cast<int>(seed % 4));
    if (pattern.bytes.empty() || !pattern.map.ascending()) continue;
    for (int64_t offset = 0; offset < 3 * pattern.map.extent(); ++offset) {
      uint64_t before = 0;
      for (uint64_t i = 0; i < 4 * pattern.bytes.size(); ++i) before += meaning(pattern, i) < offset;
      ASSERT_EQ(pattern.map.data_before(offset), before) << "seed " << seed << " offset " << offset;
    }
  }
}

TEST(Typemap, packs_and_unpacks_what_it_means) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Patterns patterns(seed);
    const Pattern pattern = patterns.make(static_cast<int>(seed % 4));
    if (pattern.bytes.empty() || pattern.map.true_lb() < 0) continue;
    Bytes memory(static_cast<size_t>(pattern.map.true_ub() + 3 * pattern.map.extent()));
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7 + seed);
    Bytes packed(3 * pattern.bytes.size());
    pack(pattern.map, memory.data(), 0, packed);
    Bytes back(memory.size()), expected(memory.size());
    for (uint64_t i = 0; i < packed.size(); ++i) {
      const size_t at = static_cast<size_t>(meaning(pattern, i));
      ASSERT_EQ(packed[i], memory[at]) << "seed " << seed << " byte " << i;
      expected[at] = packed[i];
    }
    unpack(pattern.map, packed, 0, back.data());
    EXPECT_EQ(back, expected) << "seed " << seed;
  }
}

TEST(Typemap, a_long_column_is_one_run) {
  Typemap element, column;
  element.add({0, 8, 1, 0, Basic::raw});
  element.set_bounds(0, 8);
  element.finish();
  column.repeat(element, 16, 1000000000, 8000);
  column.set_bounds(0, 8000);
  column.finish();
  EXPECT_EQ(column.runs().size(), 1u);
  const std::vector<Extent> extents = extents_of(column, 100, 8 * 999999999ull + 2, 6);
  ASSERT_EQ(extents.size(), 1u);
  EXPECT_EQ(extents[0], (Extent{100 + 16 + 8000ull * 999999999 + 2, 6}));
}

}  // namespace
}  // namespace holdfast::frontend
