#include "base/settings/text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>

#include "base/config.hpp"
#include "base/node_path.hpp"

namespace holdfast {

namespace text {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = (c >= 'A' && c <= 'Z') ? char(c + 32) : c;
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t at = text.find(separator);
    if (auto part = trim(text.substr(0, at)); !part.empty()) parts.emplace_back(part);
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string escaped(std::string_view plain) {
  std::string out;
  for (const char c : plain) {
    if (with_a_meaning.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

bool is_escape(std::string_view text) { return text.size() > 1 && text[0] == '\\' && with_a_meaning.find(text[1]) != std::string_view::npos; }

std::string unescaped(std::string_view text) {
  std::string out;
  for (; !text.empty(); text.remove_prefix(1)) {
    if (is_escape(text)) text.remove_prefix(1);
    out += text[0];
  }
  return out;
}

size_t find_unescaped(std::string_view text, std::string_view any_of) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_escape(text.substr(i))) ++i;
    else if (any_of.find(text[i]) != std::string_view::npos) return i;
  }
  return std::string_view::npos;
}

std::vector<std::string> split_unescaped(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t at = find_unescaped(text, {&separator, 1});
    if (auto part = trim(text.substr(0, at)); !part.empty()) parts.emplace_back(part);
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string join(const std::vector<std::string>& parts, const char* separator) { return fmt::format("{}", fmt::join(parts, separator)); }

std::string any_of(const std::vector<std::string>& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) out += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return out;
}

std::string size(uint64_t bytes) {
  constexpr const char* units[] = {"", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes && bytes % 1024 == 0 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  return fmt::format("{}{}", bytes, units[unit]);
}

std::string duration(uint64_t ms) {
  constexpr struct {
    uint64_t ms;
    const char* name;
  } units[] = {{3600 * 1000, "h"}, {60 * 1000, "min"}, {1000, "s"}};
  for (const auto& unit : units)
    if (ms && ms % unit.ms == 0) return fmt::format("{}{}", ms / unit.ms, unit.name);
  return fmt::format("{}ms", ms);
}

std::string working_directory() {
  char buffer[PATH_MAX];
  return ::getcwd(buffer, sizeof buffer) ? buffer : "/";
}

std::string absolute(std::string_view path, const std::string& base) {
  const std::string whole = path.starts_with('/') ? std::string(path) : base + "/" + std::string(path);
  return plain_path(whole);
}

}  // namespace text

Result<uint64_t> parse_size(std::string_view given) {
  given = text::trim(given);
  uint64_t number = 0;
  auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), number);
  const std::string unit = text::lower(text::trim(given.substr(size_t(end - given.data()))));
  int shift = -1;
  if (unit.empty() || unit == "b") shift = 0;
  for (int i = 0; i < 4; ++i) {
    const std::string letter(1, "kmgt"[i]);
    if (unit == letter || unit == letter + "b" || unit == letter + "ib") shift = 10 * (i + 1);
  }
  if (error != std::errc() || shift < 0 || (number << shift) >> shift != number)
    return Status(Kind::invalid, fmt::format("'{}' is not a size: write 1048576, 64k, 1MiB or 2G", given));
  return number << shift;
}

Result<uint64_t> parse_duration_ms(std::string_view given) {
  given = text::trim(given);
  double number = 0;
  auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), number, std::chars_format::fixed);
  const std::string unit = text::lower(text::trim(given.substr(size_t(end - given.data()))));
  double factor = 0;
  if (unit == "ms") factor = 1;
  if (unit.empty() || unit == "s" || unit == "sec") factor = 1000;
  if (unit == "min" || unit == "m") factor = 60 * 1000;
  if (unit == "h") factor = 3600 * 1000;
  if (unit == "d") factor = 24.0 * 3600 * 1000;
  if (unit == "y") factor = 365.25 * 24 * 3600 * 1000;
  const double ms = number * factor;
  if (error != std::errc() || factor == 0 || !(ms >= 0 && ms < 1e15))
    return Status(Kind::invalid, fmt::format("'{}' is not a time: write 10 (seconds), 500ms, 10s, 2min, 1.5h, 30d or 3y", given));
  return uint64_t(ms + 0.5);
}

}  // namespace holdfast
