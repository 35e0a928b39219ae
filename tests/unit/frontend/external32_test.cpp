// external32 as pure conversion; the bytes themselves are held against an MPI program in tests/mpi/frontend.
#include "frontend/external32.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace holdfast::frontend {
namespace {

// char, int, long, long double in one struct.
Typemap record() {
  Typemap map;
  map.add({0, 1, 1, 0, Basic::raw});
  map.add({4, 4, 1, 0, Basic::swap4});
  map.add({8, 8, 1, 0, Basic::int_8_to_4});
  map.add({16, sizeof(long double), 1, 0, Basic::long_double});
  map.set_bounds(0, 16 + sizeof(long double));
  map.finish();
  return map;
}

TEST(External32, sizes_follow_the_elements_also_when_cut) {
  const Typemap map = record();
  const uint64_t native = 1 + 4 + 8 + sizeof(long double), external = 1 + 4 + 4 + 16;
  EXPECT_EQ(external_size(map, 0), 0u);
  EXPECT_EQ(external_size(map, native), external);
  EXPECT_EQ(external_size(map, 3 * native + 5), 3 * external + 5);
  EXPECT_EQ(external_size(map, 3 * native + 13), 3 * external + 9);
  for (uint64_t elements : {0ull, 1ull, 5ull, 9ull}) EXPECT_EQ(external_size(map, native_size(map, external + elements)), external + elements);
}

TEST(External32, what_goes_out_comes_back) {
  const Typemap map = record();
  Bytes packed, back(2 * map.size());
  for (int i = 0; i < 2; ++i) {
    const char c = static_cast<char>('a' + i);
    const int number = -5 + i;
    const long large = -70000 + i;
    long double fraction = 0;
    std::memset(&fraction, 0, sizeof fraction);
    fraction = 1.0L / 3 + i;
    for (auto [from, bytes] : {std::pair<const void*, size_t>{&c, 1}, {&number, 4}, {&large, 8}, {&fraction, 10}}) {
      const auto* first = static_cast<const std::byte*>(from);
      packed.insert(packed.end(), first, first + bytes);
    }
    packed.resize(packed.size() + sizeof fraction - 10);
  }
  Bytes external(external_size(map, packed.size()));
  ASSERT_TRUE(to_external(map, packed, external).ok());
  EXPECT_EQ(external[1], std::byte{0xff});  // the most significant byte first
  EXPECT_EQ(external[4], std::byte{0xfb});
  ASSERT_TRUE(from_external(map, external, back).ok());
  EXPECT_EQ(back, packed);
}

TEST(External32, a_long_beyond_32_bits_is_refused) {
  Typemap map;
  map.add({0, 8, 1, 0, Basic::int_8_to_4});
  map.set_bounds(0, 8);
  map.finish();
  const int64_t values[2] = {INT32_MIN, int64_t{INT32_MAX} + 1};
  const ByteView view = std::as_bytes(std::span(values));
  Bytes external(8);
  EXPECT_TRUE(to_external(map, view.first(8), ByteSpan(external).first(4)).ok());
  const Status refused = to_external(map, view, external);
  EXPECT_EQ(refused.kind(), Kind::invalid);
  EXPECT_NE(refused.sentence().find("MPI_LONG"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::frontend
