// Reading JSON that may be anything: each field with its type and bounds, the first complaint kept.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace holdfast::layout {

using Json = nlohmann::ordered_json;

inline constexpr size_t max_text_bytes = 4096;  // PATH_MAX
inline constexpr uint64_t max_offset = uint64_t(std::numeric_limits<int64_t>::max());

bool lower_hex(std::string_view text);
bool is_id(std::string_view text);  // 32 hex digits
bool is_id_or_empty(std::string_view text);
bool is_absolute_or_empty(std::string_view text);
bool is_address_or_empty(std::string_view text);  // that, or NODE:/PATH

// File names are bytes and JSON is Unicode: what is not UTF-8 becomes {"hex": "..."}.
Json text_to_json(std::string_view text);
bool json_to_text(const Json& json, std::string& text);

// Takes fields out of one JSON object with their types and bounds checked; keeps the first complaint.
class Fields {
 public:
  Fields(const Json& object, std::string where, std::string& complaint) : object_(object), where_(std::move(where)), complaint_(complaint) {
    if (!object_.is_object()) complain("it", "is not an object");
  }

  void number(const char* key, uint64_t& into, uint64_t low, uint64_t high) {
    const Json* found = find(key);
    if (!found) return;
    if (!found->is_number_unsigned()) return complain(key, "is not a whole number");
    const uint64_t value = found->get<uint64_t>();
    if (value < low || value > high) return complain(key, fmt::format("is {}, not from {} to {}", value, low, high));
    into = value;
  }
  template <class T>
  void small(const char* key, T& into, uint64_t low, uint64_t high) {
    uint64_t value = uint64_t(into);
    number(key, value, low, high);
    into = T(value);
  }
  void time(const char* key, int64_t& into) {
    const Json* found = find(key);
    if (!found) return;
    if (!found->is_number_integer() || (found->is_number_unsigned() && found->get<uint64_t>() > max_offset)) return complain(key, "is not a time");
    into = found->get<int64_t>();
  }
  void flag(const char* key, bool& into) {
    const Json* found = find(key);
    if (!found) return;
    if (!found->is_boolean()) return complain(key, "is not true or false");
    into = found->get<bool>();
  }
  void text(const char* key, std::string& into, bool (*valid)(std::string_view) = nullptr) {
    const Json* found = find(key);
    if (!found) return;
    std::string value;
    if (!json_to_text(*found, value) || value.size() > max_text_bytes || value.find('\0') != std::string::npos)
      return complain(key, "is not a text of at most 4096 bytes");
    if (valid && !valid(value)) return complain(key, "has a value that is not allowed there");
    into = std::move(value);
  }
  // The array at `key`, or null.
  const Json* list(const char* key, size_t max_entries) {
    const Json* found = find(key);
    if (!found) return nullptr;
    if (!found->is_array() || found->size() > max_entries) {
      complain(key, fmt::format("is not a list of at most {} entries", max_entries));
      return nullptr;
    }
    return found;
  }
  const Json* find(const char* key) {
    if (!complaint_.empty()) return nullptr;
    auto found = object_.find(key);
    if (found == object_.end()) {
      complain(key, "is missing");
      return nullptr;
    }
    return &*found;
  }
  void complain(const char* key, const std::string& what) {
    if (complaint_.empty()) complaint_ = fmt::format("{}{} {}", where_, key, what);
  }

 private:
  const Json& object_;
  std::string where_;
  std::string& complaint_;
};

}  // namespace holdfast::layout
