// Paths are bytes and JSON is Unicode: in markers and stubs every byte outside printable ASCII, and '%', is written as %XX.
#pragma once
#include <string>
#include <string_view>

namespace holdfast::catalog {

inline std::string to_printable(std::string_view text) {
  static constexpr char hex[] = "0123456789ABCDEF";
  std::string out;
  for (unsigned char c : text) {
    if (c >= 0x20 && c < 0x7f && c != '%') out += char(c);
    else out += {'%', hex[c >> 4], hex[c & 15]};
  }
  return out;
}

inline std::string from_printable(std::string_view text) {
  auto value = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && value(text[i + 1]) >= 0 && value(text[i + 2]) >= 0) {
      out += char(value(text[i + 1]) * 16 + value(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace holdfast::catalog
