#include "base/settings/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/node_list.hpp"
#include "base/node_path.hpp"
#include "base/settings/text.hpp"

namespace holdfast {

using text::absolute;
using text::split;
using text::split_unescaped;

namespace {

std::optional<bool> parse_bool(std::string_view given) {
  const std::string word = text::lower(given);
  for (const char* yes : {"true", "yes", "on", "1", "enable"})
    if (word == yes) return true;
  for (const char* no : {"false", "no", "off", "0", "disable", ""})
    if (word == no) return false;
  return std::nullopt;
}

bool is_one_of(const char* values, std::string_view word) {
  const auto words = split(values, ' ');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// A comma in a directory's name is none of the list's.
std::vector<std::string> in_a_list(std::vector<std::string> directories) {
  for (std::string& directory : directories) directory = with_escaped_commas(directory);
  return directories;
}

}  // namespace

bool Flag::take(const Record&, Settings& s, const Given& given) const {
  const auto wanted = parse_bool(given.value);
  if (wanted) s.*field = *wanted;
  return wanted.has_value();
}

bool Word::take(const Record& record, Settings& s, const Given& given) const {
  if (!is_one_of(record.values, given.value)) return false;
  s.*field = std::string(given.value);
  return true;
}

std::string Word::allowed(const Record& record) const { return text::any_of(split(record.values, ' ')); }

bool OptionalWord::take(const Record& record, Settings& s, const Given& given) const {
  if (!is_one_of(record.values, given.value)) return false;
  s.*field = std::string(given.value);
  return true;
}

bool Either::take(const Record&, Settings& s, const Given& given) const {
  if (given.value != no && given.value != yes) return false;
  s.*field = given.value == yes;
  return true;
}

template <class T>
bool Number<T>::take(const Record&, Settings& s, const Given& given) const {
  T number = 0;
  if (!text::parse_integer(given.value, number) || number < least || number > most) return false;
  s.*field = number;
  return true;
}
template struct Number<int>;
template struct Number<uint64_t>;

bool OptionalNumber::take(const Record&, Settings& s, const Given& given) const {
  int number = 0;
  if (!text::parse_integer(given.value, number) || number < -1) return false;
  s.*field = number >= least ? std::optional<int>(number) : std::nullopt;
  return true;
}

bool Size::take(const Record&, Settings& s, const Given& given) const {
  const auto bytes = parse_size(given.value);
  if (!bytes || *bytes < least || *bytes > most) return false;
  s.*field = *bytes;
  return true;
}

std::string Size::shown(const Settings& s) const { return text::size(s.*field); }

std::string Size::allowed(const Record&) const { return fmt::format("a size from {} to {}", text::size(least), text::size(most)); }

bool Duration::take(const Record&, Settings& s, const Given& given) const {
  const auto ms = parse_duration_ms(given.value);
  if (!ms || *ms < least_ms || *ms > most_ms) return false;
  s.*field = *ms;
  return true;
}

std::string Duration::shown(const Settings& s) const { return text::duration(s.*field); }

std::string Duration::allowed(const Record&) const {
  return fmt::format("a time from {} to {}, for example {}", text::duration(least_ms), text::duration(most_ms), examples);
}

bool Path::take(const Record&, Settings& s, const Given& given) const {
  s.*field = given.value.empty() ? "" : absolute(given.value, given.base);
  return true;
}

bool Directories::take(const Record&, Settings& s, const Given& given) const {
  auto directories = expand_directories(given.value);
  if (!directories) return false;
  std::unordered_set<std::string_view> met;
  for (std::string& directory : *directories)
    if (!names_a_node(directory)) directory = absolute(directory, given.base);
  for (const std::string& directory : *directories)
    if (!met.insert(directory).second) return false;
  s.*field = std::move(*directories);
  return true;
}

std::string Directories::text(const Settings& s) const { return text::join(in_a_list(s.*field), ","); }

// A short list stays as people write it.
std::string Directories::text_for_jobs(const Settings& s) const {
  constexpr size_t short_bytes = 4096;
  std::string whole = text(s);
  return whole.size() <= short_bytes ? whole : directories_in_few_words(in_a_list(s.*field));
}

bool Globs::take(const Record&, Settings& s, const Given& given) const {
  std::vector<std::string> globs;
  for (const std::string& glob : split_unescaped(given.value, ':')) {
    const std::string sign = glob[0] == '!' ? "!" : "", plain = glob.substr(sign.size());
    const bool whole_path = plain.find('/') != std::string::npos && plain[0] != '*';
    globs.push_back(whole_path ? sign + absolute(plain, text::escaped(given.base)) : glob);
  }
  s.*field = std::move(globs);
  return true;
}

std::string Globs::text(const Settings& s) const { return text::join(s.*field, ":"); }

bool Patterns::take(const Record&, Settings& s, const Given& given) const {
  (s.*field).clear();
  std::string before;  // "shared:" stands before a pattern, and is none itself
  for (const std::string& pattern : split_unescaped(given.value, ':')) {
    if (pattern == "shared") before = "shared:";
    else (s.*field).push_back(std::exchange(before, "") + absolute(pattern, text::escaped(given.base)));
  }
  return true;
}

bool Record::take(Settings& s, const Given& given) const {
  return std::visit([&](const auto& of) { return of.take(*this, s, given); }, kind);
}

std::string Record::text(const Settings& s) const {
  return std::visit([&](const auto& of) { return of.text(s); }, kind);
}

std::string Record::text_for_jobs(const Settings& s) const {
  const auto* directories = std::get_if<Directories>(&kind);
  return directories ? directories->text_for_jobs(s) : text(s);
}

std::string Record::shown(const Settings& s) const {
  if (*unset && text(s) == text(Settings())) return unset;
  if (const auto* size = std::get_if<Size>(&kind)) return size->shown(s);
  if (const auto* duration = std::get_if<Duration>(&kind)) return duration->shown(s);
  return text(s);
}

std::string Record::allowed() const {
  return std::visit([&](const auto& of) { return of.allowed(*this); }, kind);
}

std::vector<std::string> Record::proposals() const {
  if (const auto* either = std::get_if<Either>(&kind)) return {either->no, either->yes};
  return split(values, ' ');
}

char Record::separator() const {
  if (std::holds_alternative<Directories>(kind)) return ',';
  return std::holds_alternative<Globs>(kind) || std::holds_alternative<Patterns>(kind) ? ':' : 0;
}

std::string Record::variable() const {
  std::string out = "HOLDFAST_";
  for (const char c : key) out += (c >= 'a' && c <= 'z') ? char(c - 32) : c;
  return out;
}

std::string Record::variable(int part) const { return part == 1 ? variable() : variable() + "_" + std::to_string(part); }

std::string Record::hint_name() const { return hint == Hint::none ? "" : hint == Hint::ours ? "holdfast_" + std::string(key) : std::string(key); }

std::string Record::option_name() const {
  if (*option) return option;
  std::string name = "--" + std::string(key);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::span<const Area* const> areas() {
  static constexpr const Area* all[] = {&layout_area,         &places_area,   &policy_area,  &engine_area, &waiting_area,   &buffers_area,
                                        &shared_pointer_area, &replicas_area, &profile_area, &output_area, &checkpoint_area};
  return all;
}

const Record* find_record(std::string_view key) {
  for (const Area* area : areas())
    for (const Record& record : area->records)
      if (record.key == key) return &record;
  return nullptr;
}

}  // namespace holdfast
