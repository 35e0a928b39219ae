#include "layout/sealed_text.hpp"

#include <bit>
#include <charconv>

#include <fmt/format.h>

#include "base/text_bytes.hpp"
#include "coding/checksum.hpp"

namespace holdfast::layout {

namespace {

constexpr size_t digits = 16;

uint64_t checksum_number(std::string_view text) { return coding::plain_checksum(bytes_of_text(text)); }
std::string checksum_of(std::string_view text) { return fmt::format("{:016x}", checksum_number(text)); }

}  // namespace

std::string seal(std::string_view what, int format, std::string text) {
  if (text.empty() || text.back() != '\n') text += '\n';
  text += fmt::format("#holdfast-{} {} ", what, format);  // the checksum covers the format too
  text += checksum_of(text);
  text += '\n';
  return text;
}

std::string a_copy_is_damaged(std::string_view what, const char* how) {
  return fmt::format("this copy of the {} is damaged: {}; run: holdfast repair", what, how);
}

Result<std::string> unseal(std::string_view what, int newest_format, std::string_view sealed, Damaged sentence) {
  const auto damaged = [&](const char* how) { return Status(Kind::corrupt, sentence(what, how)); };
  if (sealed.size() < digits + 2 || sealed.back() != '\n') return damaged("its end is missing");
  const std::string_view hex = sealed.substr(sealed.size() - 1 - digits, digits);
  const std::string_view covered = sealed.substr(0, sealed.size() - 1 - digits);
  if (hex != checksum_of(covered)) return damaged("its checksum differs");

  const std::string begin = fmt::format("\n#holdfast-{} ", what);
  const size_t line = covered.rfind(begin);
  if (line == std::string_view::npos) return damaged("it is something else");
  const std::string_view number = covered.substr(line + begin.size());
  int format = 0;
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), format);
  if (error != std::errc() || end + 1 != number.data() + number.size() || *end != ' ' || format < 1)
    return damaged("its last line is not one of ours");
  if (format > newest_format)
    return Status(Kind::version, fmt::format("the {} has format {} and this Holdfast reads up to {}: install a newer "
                                             "Holdfast to use this file; nothing was changed",
                                             what, format, newest_format));
  return std::string(sealed.substr(0, line + 1));
}

namespace {

int bits_apart(std::string_view one, std::string_view other) {
  int bits = 0;
  for (size_t i = 0; i < one.size(); ++i) bits += std::popcount(uint8_t(one[i] ^ other[i]));
  return bits;
}

}  // namespace

std::optional<std::string> without_flipped_bit(std::string_view sealed) {
  constexpr size_t most_bytes = 16 << 10;  // some 50 ms
  if (sealed.size() < digits + 2 || sealed.size() > most_bytes) return {};
  const std::string_view covered = sealed.substr(0, sealed.size() - digits - 1), end = sealed.substr(covered.size());
  const std::string right_end = checksum_of(covered) + "\n";
  if (bits_apart(right_end, end) == 1) return std::string(covered) + right_end;
  uint64_t wanted = 0;
  (void)std::from_chars(end.data(), end.data() + digits, wanted, 16);
  if (fmt::format("{:016x}\n", wanted) != end) return {};
  std::string text(sealed);
  for (size_t i = 0; i < covered.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      text[i] = char(text[i] ^ 1 << bit);
      if (checksum_number(std::string_view(text).substr(0, covered.size())) == wanted) return text;
      text[i] = char(text[i] ^ 1 << bit);
    }
  return {};
}

}  // namespace holdfast::layout
