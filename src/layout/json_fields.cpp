#include "layout/json_fields.hpp"

#include <algorithm>

#include "base/node_path.hpp"

namespace holdfast::layout {

bool lower_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
bool is_id(std::string_view text) { return text.size() == 32 && lower_hex(text); }
bool is_id_or_empty(std::string_view text) { return text.empty() || is_id(text); }
bool is_absolute_or_empty(std::string_view text) { return text.empty() || text.front() == '/'; }
bool is_address_or_empty(std::string_view text) { return is_absolute_or_empty(text) || names_a_node(text); }

namespace {

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t length = c < 0x80 ? 1 : c >= 0xc2 && c <= 0xdf ? 2 : (c & 0xf0) == 0xe0 ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
    if (length == 0 || i + length > text.size()) return false;
    uint32_t point = length == 1 ? c : c & (0xffu >> (length + 1));
    for (size_t j = 1; j < length; ++j) {
      const auto next = static_cast<unsigned char>(text[i + j]);
      if ((next & 0xc0) != 0x80) return false;
      point = point << 6 | (next & 0x3f);
    }
    const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
    if (overlong || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return false;
    i += length;
  }
  return true;
}

}  // namespace

Json text_to_json(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string hex;
  for (char c : text) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return Json{{"hex", hex}};
}

bool json_to_text(const Json& json, std::string& text) {
  if (json.is_string()) {
    text = json.get_ref<const std::string&>();
    return true;
  }
  if (!json.is_object()) return false;
  auto found = json.find("hex");
  if (found == json.end() || !found->is_string()) return false;
  const std::string& hex = found->get_ref<const std::string&>();
  if (hex.size() % 2 || !lower_hex(hex)) return false;
  auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  text.clear();
  for (size_t i = 0; i < hex.size(); i += 2) text += char(value(hex[i]) * 16 + value(hex[i + 1]));
  return true;
}

}  // namespace holdfast::layout
