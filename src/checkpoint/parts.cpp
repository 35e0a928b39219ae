#include "checkpoint/parts.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>

#include <fmt/format.h>

#include "catalog/user_files.hpp"
#include "coding/xxh3.hpp"

namespace holdfast::checkpoint {

namespace {

constexpr std::string_view looks_ending = ".look", opened_ending = ".open", at_work_ending = ".in", done_ending = ".done", of_all = "all",
                           no_file = "any";

std::string path_digits(const LocalName& name) { return fmt::format("{:016x}", coding::xxh3(name.file.data(), name.file.size(), 0)); }

std::string text_for(const LocalName& name) { return fmt::format("{}-{}", path_digits(name), name.number); }

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// Of the same path, with a lower number.
bool is_earlier(const Part& part, const LocalName& name) {
  const std::string digits = path_digits(name) + "-";
  const auto number = part.file.starts_with(digits) ? number_in<uint32_t>(std::string_view(part.file).substr(digits.size())) : std::nullopt;
  return number && *number < name.number;
}

}  // namespace

bool Part::is_of(const LocalName& name) const { return file == text_for(name); }
Part Part::for_name(const LocalName& name) const { return {text_for(name), name.step, rank, done, has_written, looks}; }

std::string encode(const Part& part) {
  return fmt::format("{}.{}.{}{}", part.file.empty() ? no_file : part.file, part.step, part.rank ? fmt::format("{}", *part.rank) : of_all,
                     part.done          ? done_ending
                     : part.has_written ? at_work_ending
                                        : opened_ending);
}

std::optional<Part> decode_part(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text)
    if (c == '.') words.emplace_back();
    else words.back() += c;
  if (words.size() != 4) return {};
  const auto step = number_in<uint64_t>(words[1]);
  const auto rank = words[2] == of_all ? std::nullopt : number_in<uint32_t>(words[2]);
  const std::string ending = "." + words[3];
  const bool looks = ending == looks_ending, has_written = ending == done_ending || ending == at_work_ending;
  if (!step || (!rank && words[2] != of_all) || (!looks && !has_written && ending != opened_ending)) return {};
  return Part{words[0] == no_file ? "" : words[0], *step, rank, ending == done_ending, has_written, looks};
}

std::vector<Part> Parts::all() const {
  std::vector<Part> parts;
  const auto names = catalog::list_directory(directory_);
  if (!names) return parts;
  for (const std::string& name : *names)
    if (auto part = decode_part(name)) parts.push_back(std::move(*part));
  return parts;
}

Status Parts::put(const Part& part) const { return catalog::make_file(fmt::format("{}/{}", directory_, encode(part)), 0600); }
void Parts::remove(const Part& part) const { (void)catalog::unlink_file(fmt::format("{}/{}", directory_, encode(part))); }

void Parts::end(const Part& part) const {
  Part after = part;
  after.done = after.has_written = true, after.looks = false;
  (void)catalog::move(fmt::format("{}/{}", directory_, encode(part)), fmt::format("{}/{}", directory_, encode(after)));
}

bool Parts::has_taken(const LocalName& name, uint32_t rank) const {
  const auto parts = all();
  return std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return part.rank == rank && part.is_of(name); });
}

bool Parts::has_written(const LocalName& name, uint32_t rank) const {
  const auto parts = all();
  return std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return part.rank == rank && part.is_of(name) && part.has_written; });
}

void Parts::writes(const LocalName& name, uint32_t rank) const {
  const Part now{text_for(name), name.step, rank};
  for (const bool looks : {false, true}) {
    const Part before{now.file, now.step, rank, false, false, looks};
    (void)catalog::move(fmt::format("{}/{}", directory_, encode(before)), fmt::format("{}/{}", directory_, encode(now)));
  }
}

Status Parts::take(const LocalName& name, uint32_t rank, bool ends_others, bool looks) const {
  Part own{text_for(name), name.step, rank, false, has_written(name, rank), looks};
  for (const Part& part : all()) own.looks &= part.rank != rank || !part.is_of(name) || part.looks;
  HF_TRY(put(own));
  for (const Part& part : all()) {
    if (part.rank != rank || part == own) continue;
    const bool is_over = part.step != name.step || is_earlier(part, name);
    const bool has_written_since = part.is_of(name) && part.has_written && !part.done && !own.has_written;  // another process of the rank
    if (has_written_since) remove(own);
    else if (part.is_of(name) || (part.file.empty() && part.step == name.step)) remove(part);  // it has come back, or takes part after all
    else if (ends_others && is_over && !part.done) end(part);
  }
  return {};
}

void Parts::begins(uint64_t step, uint32_t rank) const {
  for (const Part& part : all())
    if (part.rank == rank && part.step != step && !part.done) end(part);
}

Status Parts::complete(uint64_t step, uint32_t rank) const {
  bool takes_part = false;
  for (const Part& part : all()) {
    if (part.rank != rank || part.step != step || part.file.empty()) continue;
    takes_part = true;
    if (!part.done) end(part);
  }
  return takes_part ? Status() : put({"", step, rank, true});
}

Status Parts::completed(const LocalName& name, std::optional<uint32_t> rank) const {
  const Part done{text_for(name), name.step, rank, true};
  if (rank)
    for (const auto& [has_written, looks] : {std::pair(true, false), std::pair(false, false), std::pair(false, true)})
      remove({done.file, done.step, rank, false, has_written, looks});
  return put(done);
}

bool Parts::any_at_work(const LocalName& name) const {
  const auto parts = all();
  const auto of_file = [&](const Part& part) { return part.is_of(name); };
  if (std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return of_file(part) && part.done && !part.rank; })) return false;
  return std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return of_file(part) && !part.done; });
}

}  // namespace holdfast::checkpoint
