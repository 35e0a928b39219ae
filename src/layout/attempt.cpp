#include "layout/attempt.hpp"

#include <charconv>

#include <fmt/format.h>

#include "layout/json_fields.hpp"

namespace holdfast::layout {

namespace {

constexpr size_t id_digits = 16;

template <class Number>
bool is_all_of(std::string_view text, Number& into, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string id_text(uint64_t id) { return fmt::format("{:016x}", id); }

bool is_attempt_id(std::string_view text) {
  return text.size() == id_digits && lower_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

std::string text_of(const Attempt& attempt) {
  return attempt.id ? fmt::format("{}.{}", attempt.number, id_text(attempt.id)) : fmt::format("{}", attempt.number);
}

std::optional<Attempt> parse_attempt(std::string_view text) {
  Attempt attempt;
  const size_t dot = text.find('.');
  if (!is_all_of(text.substr(0, dot), attempt.number, 10)) return {};
  if (dot == std::string_view::npos) return attempt;
  const std::string_view id = text.substr(dot + 1);
  if (!is_attempt_id(id) || !is_all_of(id, attempt.id, 16)) return {};
  return attempt;
}

}  // namespace holdfast::layout
