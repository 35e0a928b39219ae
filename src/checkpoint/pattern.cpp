#include "checkpoint/pattern.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/settings/text.hpp"
#include "catalog/user_files.hpp"
#include "layout/json_fields.hpp"

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

constexpr std::string_view option = "--checkpoint", fields_begin = "{*?";

Status refused(const std::string& pattern, const std::string& why) { return Status(Kind::invalid, fmt::format("{} '{}': {}", option, pattern, why)); }

Status as_of_complete(const Status& refusal) { return Status(Kind::invalid, "--complete" + refusal.sentence().substr(option.size())); }

}  // namespace

Result<Pattern> Pattern::parse(const std::string& whole) {
  Pattern pattern;
  pattern.is_shared_ = whole.starts_with(shared_prefix);
  const std::string text = pattern.is_shared_ ? whole.substr(shared_prefix.size()) : whole;
  pattern.text_ = text;
  int steps = 0, ranks = 0;
  std::string literal;
  auto add = [&](Form form) {
    if (!literal.empty()) pattern.pieces_.push_back({Form::literal, std::exchange(literal, "")});
    pattern.pieces_.push_back({form, ""});
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = std::string_view(text).substr(i);
    if (text::is_escape(rest)) literal += text[++i];
    else if (rest.starts_with("{step}")) add(Form::step), ++steps, i += 5;
    else if (rest.starts_with("{rank}")) add(Form::rank), ++ranks, i += 5;
    else if (rest[0] == '{') return refused(whole, "the fields are {step} and {rank}; this one means nothing; write '\\{' where a name has one");
    else if (rest[0] == '*') add(Form::any), pattern.is_open_ = true;
    else if (rest[0] == '?') add(Form::one), pattern.is_open_ = true;
    else literal += text[i];
  }
  if (!literal.empty()) pattern.pieces_.push_back({Form::literal, literal});
  pattern.has_step_ = steps > 0;
  pattern.has_rank_ = ranks > 0;
  if (const Status sound = pattern.check(steps, ranks); !sound) return refused(whole, sound.sentence());
  // No field holds a slash: the last one is in a literal, and the file's name behind it.
  pattern.directory_pieces_ = pattern.pieces_;
  while (pattern.directory_pieces_.back().text.find('/') == std::string::npos) pattern.directory_pieces_.pop_back();
  std::string& last = pattern.directory_pieces_.back().text;
  pattern.name_begins_ = last.substr(last.rfind('/') + 1);
  last.resize(last.rfind('/'));
  const std::string& end = pattern.pieces_.back().text;
  pattern.name_ends_ = end.substr(end.rfind('/') + 1);
  return pattern;
}

// Empty where all is well, else why not.
Status Pattern::check(int steps, int ranks) const {
  const auto bad = [](const char* why) { return Status(Kind::invalid, why); };
  if (is_shared_ && ranks > 0) return bad("each rank has a file of its own where a {rank} stands: nobody shares it; leave out 'shared:'");
  if (steps == 0 && ranks == 0 && !is_open_)
    return bad("{step}, {rank} or both must stand in it, as in ck.{step}.{rank} or restart.{rank}; a single file is kept by --path");
  if (is_shared_ && steps == 0)
    return bad("a {step} must stand in it: nothing else says when all ranks are done with a file that they write together");
  if (is_open_ && steps == 0 && ranks > 0)
    return bad("where a wildcard stands beside a {rank} there must be a {step}, too: nothing else says which files belong together");
  const auto is_field = [](const Piece& piece) { return piece.form == Form::step || piece.form == Form::rank; };
  for (size_t i = 1; i < pieces_.size(); ++i)
    if (pieces_[i].form != Form::literal && pieces_[i - 1].form != Form::literal && (is_field(pieces_[i]) || is_field(pieces_[i - 1])))
      return bad("between two fields, or a field and a wildcard, there must be something that is no digit");
  return {};
}

Result<Pattern> Pattern::resolve(const std::string& text) {
  if (text.starts_with(shared_prefix)) {
    auto shared = resolve(text.substr(shared_prefix.size()));
    return shared ? parse(std::string(shared_prefix) + shared->text()) : shared;
  }
  const size_t slash = text.rfind('/', text::find_unescaped(text, fields_begin));
  if (slash == 0 || slash == std::string::npos) return parse(text);
  return parse(text::escaped(catalog::resolved_path(text::unescaped(text.substr(0, slash)))) + text.substr(slash));
}

bool Pattern::may_be(std::string_view name) const { return name.starts_with(name_begins_) && name.ends_with(name_ends_); }

bool Pattern::fits(const Pieces& pieces, size_t at, std::string_view path, Fields& fields, bool begins_component) {
  if (at == pieces.size()) return path.empty();
  const Piece& piece = pieces[at];
  if (piece.form == Form::step || piece.form == Form::rank) return fits_number(pieces, at, path, fields);
  if (piece.form != Form::literal) return fits_any(pieces, at, path, fields, begins_component);
  if (!path.starts_with(piece.text)) return false;
  fields.stem += piece.text;
  return fits(pieces, at + 1, path.substr(piece.text.size()), fields, piece.text.ends_with('/'));
}

bool Pattern::fits_number(const Pieces& pieces, size_t at, std::string_view path, Fields& fields) {
  const bool is_step = pieces[at].form == Form::step;
  const std::string_view before = path;
  uint64_t number = 0;
  // A larger step stands in no manifest: the file would be written as a checkpoint, and nothing that is protected of it be found.
  if (!take_number(path, number) || number > (is_step ? layout::max_offset : uint64_t(~0u))) return false;
  if (is_step && fields.step.value_or(number) != number) return false;
  if (!is_step && fields.rank.value_or(uint32_t(number)) != number) return false;
  const std::string_view digits = before.substr(0, before.size() - path.size());
  const bool is_padded = digits.size() > 1 && digits[0] == '0';
  if (is_step) fields.step = number, fields.stem += is_padded ? fmt::format("{{step:{}}}", digits.size()) : "{step}";
  else fields.rank = uint32_t(number), fields.stem += digits;
  return fits(pieces, at + 1, path, fields, false);
}

// As few characters as may be: none of them a slash, nor a dot that hides a file.
bool Pattern::fits_any(const Pieces& pieces, size_t at, std::string_view path, Fields& fields, bool begins_component) {
  const bool is_one = pieces[at].form == Form::one;
  if (begins_component && path.starts_with('.')) return false;
  for (size_t taken = is_one; taken <= path.size() && (taken == 0 || path[taken - 1] != '/'); ++taken) {
    Fields attempt = fields;
    attempt.stem += path.substr(0, taken);
    if (fits(pieces, at + 1, path.substr(taken), attempt, false)) return fields = std::move(attempt), true;
    if (is_one) return false;
  }
  return false;
}

std::optional<Named> Pattern::match(std::string_view path) const {
  Fields fields;
  if (!fits(pieces_, path, fields)) return {};
  return Named{fields.step.value_or(0), fields.rank.value_or(0)};
}

std::string Pattern::stem(std::string_view path) const {
  Fields fields;
  return fits(pieces_, path, fields) ? fields.stem : "";
}

bool Pattern::may_lie_in(std::string_view directory) const {
  Fields fields;
  return fits(directory_pieces_, directory, fields);
}

// By what stands before its fields, and by its depth: no field has a slash in it.
bool Pattern::may_lie_below(std::string_view directory) const {
  const std::string_view text = text_, begins = pieces_.front().text;
  const size_t both = std::min(begins.size(), directory.size());
  return begins.substr(0, both) == directory.substr(0, both) && std::ranges::count(text, '/') > std::ranges::count(directory, '/');
}

// What the first so many components of a directory's path have to fit; all of them where there are fewer.
Pattern::Pieces Pattern::pieces_until_component(size_t components) const {
  Pieces first;
  for (const Piece& piece : directory_pieces_) {
    size_t end = 0;
    while ((end = piece.text.find('/', end)) != std::string::npos && components-- > 0) ++end;
    if (end == std::string::npos) first.push_back(piece);
    else {
      if (end > 0) first.push_back({Form::literal, piece.text.substr(0, end)});
      return first;
    }
  }
  return first;
}

std::optional<Pattern::Above> Pattern::above(std::string_view directory) const {
  Fields fields;
  // Each component begins with a slash.
  if (!fits(pieces_until_component(size_t(std::ranges::count(directory, '/'))), directory, fields)) return {};
  return Above{fields.step};
}

std::string Pattern::root() const {
  const std::string& begins = pieces_.front().text;
  return begins.substr(0, begins.rfind('/'));
}

std::string Pattern::directory() const {
  const std::string parent = text_.substr(0, text_.rfind('/'));
  return text::find_unescaped(parent, fields_begin) == std::string::npos ? text::unescaped(parent) : "";
}

template <class Parse>
Result<Patterns> Patterns::each(const std::vector<std::string>& texts, const std::vector<std::string>& completing, Parse parse) {
  Patterns patterns;
  // These first: a file that another pattern means as well is what completes.
  for (const auto* some : {&completing, &texts})
    for (const std::string& text : *some) {
      auto parsed = parse(text);
      if (!parsed && some == &completing) return as_of_complete(parsed.status());
      if (!parsed) return parsed.status();
      // Named twice it is one all the same, and one file of its checkpoint.
      if (std::any_of(patterns.all_.begin(), patterns.all_.end(), [&](const Pattern& one) { return one.text() == parsed->text(); })) continue;
      parsed->completes_ = some == &completing;
      patterns.all_.push_back(std::move(*parsed));
    }
  if (texts.empty()) return Status(Kind::invalid, "no pattern says what checkpoints are");
  HF_TRY(patterns.check());
  return patterns;
}

Status Patterns::check() const {
  for (const Pattern& one : all_) {
    if (one.is_single() != are_single())
      return Status(Kind::invalid,
                    fmt::format("--checkpoint '{}' and '{}': where a pattern has no field each file is protected by itself, and such patterns cannot "
                                "stand beside others; give all of them a {{step}}, or none a field",
                                all_.front().text(), one.text()));
    if (one.has_step() != have_step())
      return Status(Kind::invalid,
                    fmt::format("--checkpoint '{}' and '{}': all patterns have a {{step}}, or none has, for it says which files belong together",
                                all_.front().text(), one.text()));
    if (one.completes() && !one.has_step())
      return Status(Kind::invalid, fmt::format("--complete '{}': a {{step}} must say which checkpoint is complete", one.text()));
    if (one.completes() && one.is_shared())
      return Status(Kind::invalid, fmt::format("--complete '{}': leave out 'shared:', for one rank writes this file", one.text()));
  }
  return {};
}

Result<Patterns> Patterns::parse(const std::vector<std::string>& texts, const std::vector<std::string>& completing) {
  return each(texts, completing, &Pattern::parse);
}
Result<Patterns> Patterns::resolve(const std::vector<std::string>& texts, const std::vector<std::string>& completing) {
  return each(texts, completing, &Pattern::resolve);
}

bool Patterns::have_completing() const { return all_.front().completes(); }

bool Patterns::are_rolled() const {
  return std::any_of(all_.begin(), all_.end(), [](const Pattern& one) { return (one.is_open() && !one.is_single()) || one.completes(); });
}

uint32_t Patterns::files_of_all(uint32_t ranks) const {
  uint32_t files = 0;
  for (const Pattern& one : all_) files += one.is_open() ? 0 : one.has_rank() ? ranks : 1;
  return files;
}

uint32_t Patterns::place(const Named& named, uint32_t ranks) const {
  if (all_[named.part].is_open()) return files_of_all(ranks);
  if (named.rank >= ranks) return files_of_all(ranks) + named.rank;  // of no rank of the job: beside them all
  uint32_t before = 0;
  for (uint32_t part = 0; part < named.part; ++part) before += all_[part].is_open() ? 0 : all_[part].has_rank() ? ranks : 1;
  return before + named.rank;
}

std::string Patterns::stem(std::string_view path) const {
  const auto named = match(path);
  return named && all_[named->part].is_open() ? all_[named->part].stem(path) : "";
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

bool Patterns::may_lie_below(std::string_view directory) const {
  return std::any_of(all_.begin(), all_.end(), [&](const Pattern& one) { return one.may_lie_below(directory); });
}

bool Patterns::may_hold_steps(std::string_view directory) const {
  return std::any_of(all_.begin(), all_.end(), [&](const Pattern& one) {
    const auto above = one.directory().empty() ? one.above(directory) : std::nullopt;
    return above && !above->step;
  });
}

std::optional<uint64_t> Patterns::step_of_directory(std::string_view directory) const {
  std::optional<uint64_t> step;
  for (const Pattern& one : all_) {
    const auto above = one.above(directory);
    if (!above) continue;
    if (!above->step || (step && step != above->step)) return {};
    step = above->step;
  }
  return step;
}

bool Patterns::have_directories_of_steps() const {
  return std::any_of(all_.begin(), all_.end(), [](const Pattern& one) { return one.has_step() && one.directory().empty(); });
}

std::string Patterns::texts() const {
  std::string texts;
  for (const Pattern& one : all_) texts += (texts.empty() ? "'" : ", '") + one.text() + "'";
  return texts;
}

}  // namespace holdfast::checkpoint
