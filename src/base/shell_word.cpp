#include "base/shell_word.hpp"

namespace holdfast {

std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string shell_word(const std::string& text) {
  static constexpr char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  return !text.empty() && text.find_first_not_of(plain) == std::string::npos ? text : shell_quoted(text);
}

}  // namespace holdfast
