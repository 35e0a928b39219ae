#include "checkpoint/pattern.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "catalog/user_files.hpp"

namespace holdfast::checkpoint {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes the digits at the beginning of `text`; false where there are none, or too many for a number.
template <class Number>
bool take_number(std::string_view& text, Number& into) {
  size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, into);
  if (digits == 0 || error != std::errc()) return false;
  text.remove_prefix(digits);
  return true;
}

}  // namespace

Result<Pattern> Pattern::parse(const std::string& text) {
  auto refuse = [&](const std::string& why) { return Status(Kind::invalid, fmt::format("--checkpoint '{}': {}", text, why)); };
  Pattern pattern;
  pattern.text_ = text;
  int steps = 0, ranks = 0;
  std::string literal;
  auto add = [&](Part part) {
    if (!literal.empty()) pattern.pieces_.push_back({Part::literal, std::exchange(literal, "")});
    pattern.pieces_.push_back({part, ""});
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = std::string_view(text).substr(i);
    if (rest.starts_with("{step}")) add(Part::step), ++steps, i += 5;
    else if (rest.starts_with("{rank}")) add(Part::rank), ++ranks, i += 5;
    else if (rest[0] == '{') return refuse("the fields are {step} and {rank}; this one means nothing");
    else if (rest[0] == '*' || rest[0] == '?')
      return refuse("wildcards are not served yet; write where the step and the rank stand: ck.{step}.{rank}");
    else literal += text[i];
  }
  if (!literal.empty()) pattern.pieces_.push_back({Part::literal, literal});
  if (steps == 0 || ranks == 0) return refuse("both {step} and {rank} must stand in it; other programs are not served yet");
  for (size_t i = 1; i < pattern.pieces_.size(); ++i)
    if (pattern.pieces_[i].part != Part::literal && pattern.pieces_[i - 1].part != Part::literal)
      return refuse("between two fields there must be something that is no digit");
  // No field holds a slash: the last one is in a literal, and the file's name behind it.
  pattern.directory_pieces_ = pattern.pieces_;
  while (pattern.directory_pieces_.back().text.find('/') == std::string::npos) pattern.directory_pieces_.pop_back();
  std::string& last = pattern.directory_pieces_.back().text;
  last.resize(last.rfind('/'));
  const std::string name = text.substr(text.rfind('/') + 1);
  pattern.name_begins_ = name.substr(0, name.find('{'));
  pattern.name_ends_ = name.find('{') == std::string::npos ? name : name.substr(name.rfind('}') + 1);
  return pattern;
}

Result<Pattern> Pattern::resolve(const std::string& text) {
  const size_t slash = text.rfind('/', text.find('{'));
  if (slash == 0 || slash == std::string::npos) return parse(text);
  return parse(catalog::resolved_path(text.substr(0, slash)) + text.substr(slash));
}

bool Pattern::may_be(std::string_view name) const { return name.starts_with(name_begins_) && name.ends_with(name_ends_); }

bool Pattern::fits(const std::vector<Piece>& pieces, std::string_view path, Fields& fields) {
  for (const Piece& piece : pieces) {
    if (piece.part == Part::literal) {
      if (!path.starts_with(piece.text)) return false;
      path.remove_prefix(piece.text.size());
      continue;
    }
    uint64_t number = 0;
    if (!take_number(path, number)) return false;
    if (piece.part == Part::rank && number > ~0u) return false;
    if (piece.part == Part::step && fields.step.value_or(number) != number) return false;
    if (piece.part == Part::rank && fields.rank.value_or(uint32_t(number)) != number) return false;
    if (piece.part == Part::step) fields.step = number;
    else fields.rank = uint32_t(number);
  }
  return path.empty();
}

std::optional<Named> Pattern::match(std::string_view path) const {
  Fields fields;
  if (!fits(pieces_, path, fields)) return {};
  return Named{*fields.step, *fields.rank};
}

bool Pattern::may_lie_in(std::string_view directory) const {
  Fields fields;
  return fits(directory_pieces_, directory, fields);
}

std::string Pattern::directory() const {
  const std::string parent = text_.substr(0, text_.rfind('/'));
  return parent.find('{') == std::string::npos ? parent : "";
}

}  // namespace holdfast::checkpoint
