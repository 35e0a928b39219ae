#include "layout/sealed_text.hpp"

#include <charconv>

#include <fmt/format.h>

#include "coding/checksum.hpp"

namespace holdfast::layout {

namespace {

constexpr size_t digits = 16;

std::string checksum_of(std::string_view text) {
  return fmt::format("{:016x}", coding::plain_checksum(std::as_bytes(std::span(text.data(), text.size()))));
}

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

}  // namespace holdfast::layout
