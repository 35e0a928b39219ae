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

Result<Pattern> Pattern::parse(const std::string& whole) {
  auto refuse = [&](const std::string& why) { return Status(Kind::invalid, fmt::format("--checkpoint '{}': {}", whole, why)); };
  Pattern pattern;
  pattern.is_shared_ = whole.starts_with(shared_prefix);
  const std::string text = pattern.is_shared_ ? whole.substr(shared_prefix.size()) : whole;
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
    else if (rest[0] == '*' || rest[0] == '?') return refuse("wildcards are not served; write where the step and the rank stand: ck.{step}.{rank}");
    else literal += text[i];
  }
  if (!literal.empty()) pattern.pieces_.push_back({Part::literal, literal});
  if (pattern.is_shared_ && ranks > 0) return refuse("each rank has a file of its own where a {rank} stands: nobody shares it; leave out 'shared:'");
  if (steps == 0 && ranks == 0)
    return refuse("{step}, {rank} or both must stand in it, as in ck.{step}.{rank} or restart.{rank}; a single file is kept by --path");
  pattern.has_step_ = steps > 0;
  pattern.has_rank_ = ranks > 0;
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
  if (text.starts_with(shared_prefix)) {
    auto shared = resolve(text.substr(shared_prefix.size()));
    return shared ? parse(std::string(shared_prefix) + shared->text()) : shared;
  }
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
  return Named{fields.step.value_or(0), fields.rank.value_or(0)};
}

bool Pattern::may_lie_in(std::string_view directory) const {
  Fields fields;
  return fits(directory_pieces_, directory, fields);
}

std::string Pattern::directory() const {
  const std::string parent = text_.substr(0, text_.rfind('/'));
  return parent.find('{') == std::string::npos ? parent : "";
}

template <class Parse>
Result<Patterns> Patterns::each(const std::vector<std::string>& texts, Parse parse) {
  Patterns patterns;
  for (const std::string& text : texts) {
    auto parsed = parse(text);
    if (!parsed) return parsed.status();
    patterns.all_.push_back(std::move(*parsed));
  }
  if (patterns.all_.empty()) return Status(Kind::invalid, "no pattern says what checkpoints are");
  for (const Pattern& one : patterns.all_)
    if (one.has_step() != patterns.have_step())
      return Status(Kind::invalid,
                    fmt::format("--checkpoint '{}' and '{}': all patterns have a {{step}}, or none has, for it says which files belong together",
                                patterns.all_.front().text(), one.text()));
  return patterns;
}

Result<Patterns> Patterns::parse(const std::vector<std::string>& texts) { return each(texts, &Pattern::parse); }
Result<Patterns> Patterns::resolve(const std::vector<std::string>& texts) { return each(texts, &Pattern::resolve); }

uint32_t Patterns::files_of_all(uint32_t ranks) const {
  uint32_t files = 0;
  for (const Pattern& one : all_) files += one.has_rank() ? ranks : 1;
  return files;
}

uint32_t Patterns::place(const Named& named, uint32_t ranks) const {
  if (named.rank >= ranks) return files_of_all(ranks) + named.rank;  // of no rank of the job: beside them all
  uint32_t before = 0;
  for (uint32_t part = 0; part < named.part; ++part) before += all_[part].has_rank() ? ranks : 1;
  return before + named.rank;
}

bool Patterns::may_be(std::string_view name) const {
  return std::any_of(all_.begin(), all_.end(), [&](const Pattern& one) { return one.may_be(name); });
}

std::optional<Named> Patterns::match(std::string_view path) const {
  for (size_t part = 0; part < all_.size(); ++part)
    if (auto named = all_[part].match(path)) return named->part = uint32_t(part), named;
  return {};
}

bool Patterns::may_lie_in(std::string_view directory) const {
  return std::any_of(all_.begin(), all_.end(), [&](const Pattern& one) { return one.may_lie_in(directory); });
}

std::string Patterns::texts() const {
  std::string texts;
  for (const Pattern& one : all_) texts += (texts.empty() ? "'" : ", '") + one.text() + "'";
  return texts;
}

}  // namespace holdfast::checkpoint
