// Values as text: what the kinds of settings share.
#pragma once
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

namespace text {

template <class T>
bool parse_integer(std::string_view text, T& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

std::string_view trim(std::string_view text);
std::string lower(std::string_view text);
// Without empty parts, each trimmed.
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, const char* separator);

// In lists of globs and patterns a backslash lets the character behind it stand for itself, where that has a meaning.
inline constexpr std::string_view with_a_meaning = "\\:*?[{";
bool is_escape(std::string_view text);
std::string escaped(std::string_view plain);
std::string unescaped(std::string_view text);
// Where the first of these characters stands that has its meaning.
size_t find_unescaped(std::string_view text, std::string_view any_of);
// The elements of a list, each trimmed, with their backslashes.
std::vector<std::string> split_unescaped(std::string_view text, char separator);

// "a, b or c"
std::string any_of(const std::vector<std::string>& words);
// With the largest unit that divides them: "256MiB", "10s".
std::string size(uint64_t bytes);
std::string duration(uint64_t ms);

std::string working_directory();
// Absolute, without empty and "." components and trailing slashes. ".." stays: with symbolic links only the
// kernel knows where it leads.
std::string absolute(std::string_view path, const std::string& base);

}  // namespace text

}  // namespace holdfast
