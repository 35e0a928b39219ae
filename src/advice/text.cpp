#include "advice/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/plural.hpp"

namespace holdfast::advice {

std::string bytes_text(double bytes) {
  static const char* const binary[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  static const char* const decimal[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
  double value = std::round(bytes);
  size_t unit = 0;
  for (; unit < 5 && value >= 1024 && std::fmod(value, 1024) == 0; ++unit) value /= 1024;
  if (value < 1024) return fmt::format("{:.0f} {}", value, value == 1 && unit == 0 ? "byte" : binary[unit]);
  value = bytes;
  if (value < 10000) return fmt::format("{:.0f} bytes", value);
  for (unit = 0; unit < 5 && value >= 999.5; ++unit) value /= 1000;
  return value >= 99.5 ? fmt::format("{:.0f} {}", value, decimal[unit]) : fmt::format("{:.3g} {}", value, decimal[unit]);
}

std::string seconds_text(double seconds) {
  if (seconds <= 0) return "0 s";
  if (seconds < 0.9995e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  return seconds < 99.95 ? fmt::format("{:.3g} s", seconds) : fmt::format("{:.0f} s", seconds);
}

std::string count_text(uint64_t count) {
  std::string out = std::to_string(count);
  for (size_t at = out.size(); at > 3; at -= 3) out.insert(at - 3, ",");
  return out;
}

std::string plural_text(uint64_t count, const std::string& noun) { return count_text(count) + " " + noun_for(count, noun); }

std::string share_text(double share) { return share > 0 && share < 0.01 ? "less than 1 %" : fmt::format("{:.0f} %", std::floor(100 * share + 1e-9)); }

std::string rate_text(double bytes_per_second) { return bytes_text(std::round(bytes_per_second / 1e3) * 1e3) + "/s"; }

namespace {

constexpr std::string_view digits = "0123456789";

std::string masked(char c) {
  if (c == ':') return "?";
  return std::string(c == '*' || c == '?' || c == '[' || c == '\\' ? "\\" : "") + c;
}

}  // namespace

std::string glob_over_numbers(const std::string& path) {
  std::string out;
  bool in_number = false;
  for (const char c : path) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) out += masked(c);
    else if (!in_number) out += '*';
    in_number = digit;
  }
  return out;
}

namespace {

std::vector<std::string_view> numbers_in(std::string_view path) {
  std::vector<std::string_view> numbers;
  for (size_t at = 0; (at = path.find_first_of(digits, at)) != path.npos;) {
    const size_t end = std::min(path.find_first_not_of(digits, at), path.size());
    numbers.push_back(path.substr(at, end - at));
    at = end;
  }
  return numbers;
}

}  // namespace

std::string glob_over_paths(const std::vector<std::string_view>& paths) {
  const std::vector<std::string_view> first = numbers_in(paths.front());
  std::vector<bool> differs(first.size(), false);
  for (const std::string_view path : paths) {
    const std::vector<std::string_view> numbers = numbers_in(path);
    for (size_t i = 0; i < first.size() && i < numbers.size(); ++i) differs[i] = differs[i] || numbers[i] != first[i];
  }
  std::string out;
  size_t at = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    const size_t number = size_t(first[i].data() - paths.front().data());
    out += glob_of(std::string(paths.front().substr(at, number - at))) + (differs[i] ? "*" : std::string(first[i]));
    at = number + first[i].size();
  }
  return out + glob_of(std::string(paths.front().substr(at)));
}

std::string glob_of(const std::string& path) {
  std::string out;
  for (const char c : path) out += masked(c);
  return out;
}

uint64_t power_above(uint64_t value) { return std::bit_ceil(value ? value : 1); }
uint64_t power_below(uint64_t value) { return std::bit_floor(value ? value : 1); }

}  // namespace holdfast::advice
