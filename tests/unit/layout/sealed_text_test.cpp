// Sealed texts of which there is one copy: one flipped bit takes nothing from them.
#include "layout/sealed_text.hpp"

#include <gtest/gtest.h>

namespace holdfast::layout {
namespace {

std::string flipped(std::string text, size_t bit) {
  text[bit / 8] = char(text[bit / 8] ^ 1 << bit % 8);
  return text;
}

TEST(SealedText, a_flipped_bit_is_told_wherever_it_is) {
  const std::string whole = seal("target", 2, "{\"uuid\": \"0123456789abcdef\"}");
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    EXPECT_EQ(unseal("target", 2, flipped(whole, bit)).status().kind(), Kind::corrupt);
    ASSERT_EQ(without_flipped_bit(flipped(whole, bit)), whole) << bit;
  }
}

TEST(SealedText, of_more_damage_nothing_is_made) {
  const std::string whole = seal("target", 2, "{\"uuid\": \"0123456789abcdef\"}");
  EXPECT_EQ(without_flipped_bit(whole), std::nullopt) << "it has none";
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit)
    for (const size_t other : {bit ^ 1, bit ^ 8, size_t(3), 8 * whole.size() - 2})
      if (bit != other && (other >> 3) < whole.size())
        EXPECT_EQ(without_flipped_bit(flipped(flipped(whole, bit), other)), std::nullopt) << bit << " " << other;
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) EXPECT_EQ(without_flipped_bit(whole.substr(0, bytes)), std::nullopt) << "it was cut";
  EXPECT_EQ(without_flipped_bit(std::string(4096, '\0')), std::nullopt);
  EXPECT_EQ(without_flipped_bit(flipped(seal("target", 1, std::string(1 << 20, 'x')), 5)), std::nullopt) << "it is not waited for";
}

}  // namespace
}  // namespace holdfast::layout
