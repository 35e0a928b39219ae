#include "checkpoint/parts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

#include <fmt/format.h>

#include "catalog/user_files.hpp"
#include "coding/xxh3.hpp"

namespace holdfast::checkpoint {

namespace {

constexpr std::string_view of_all = "all", no_file = "any";
constexpr std::array<std::string_view, 4> endings = {"open", "in", "out", "done"};  // by Taking
constexpr Taking not_done[] = {Taking::opened, Taking::writes, Taking::written};

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
Part Part::for_name(const LocalName& name) const { return {text_for(name), name.step, rank, taking}; }

std::string encode(const Part& part) {
  return fmt::format("{}.{}.{}.{}", part.file.empty() ? no_file : part.file, part.step, part.rank ? fmt::format("{}", *part.rank) : of_all,
                     endings.at(size_t(part.taking)));
}

std::optional<Part> decode_part(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text)
    if (c == '.') words.emplace_back();
    else words.back() += c;
  if (words.size() != 4) return {};
  const auto step = number_in<uint64_t>(words[1]);
  const auto rank = words[2] == of_all ? std::nullopt : number_in<uint32_t>(words[2]);
  const auto* const ending = std::find(endings.begin(), endings.end(), words[3]);
  if (!step || (!rank && words[2] != of_all) || ending == endings.end()) return {};
  return Part{words[0] == no_file ? "" : words[0], *step, rank, Taking(ending - endings.begin())};
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

void Parts::move(Part part, Taking to) const {
  const std::string from = encode(part);
  part.taking = to;
  (void)catalog::move(fmt::format("{}/{}", directory_, from), fmt::format("{}/{}", directory_, encode(part)));
}

bool Parts::has_taken(const LocalName& name, uint32_t rank) const {
  const auto parts = all();
  return std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return part.rank == rank && part.is_of(name); });
}

bool Parts::has_written(const LocalName& name, uint32_t rank) const {
  const auto parts = all();
  return std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return part.rank == rank && part.is_of(name) && part.has_written(); });
}

void Parts::writes(const LocalName& name, uint32_t rank) const {
  for (const Taking before : {Taking::opened, Taking::written}) move({text_for(name), name.step, rank, before}, Taking::writes);
}

void Parts::closes(const LocalName& name, uint32_t rank) const { move({text_for(name), name.step, rank, Taking::writes}, Taking::written); }

Status Parts::take(const LocalName& name, uint32_t rank, bool ends_others) const {
  Part own{text_for(name), name.step, rank, Taking::opened};
  for (const Part& part : all())
    if (part.rank == rank && part.is_of(name)) own.taking = std::max(own.taking, std::min(part.taking, Taking::written));
  HF_TRY(put(own));
  for (const Part& part : all()) {
    if (part.rank != rank || part == own) continue;
    const bool is_over = part.step != name.step || is_earlier(part, name);
    const bool has_only_looked = is_earlier(part, name) && !part.has_written();               // before it was truncated
    const bool is_further = part.is_of(name) && !part.is_done() && part.taking > own.taking;  // by another process of the rank, meanwhile
    if (is_further) remove(own);
    else if (part.is_of(name) || (part.file.empty() && part.step == name.step)) remove(part);  // it has come back, or takes part after all
    else if (ends_others && has_only_looked) remove(part);
    else if (ends_others && is_over && !part.is_done()) move(part, Taking::done);
  }
  return {};
}

void Parts::begins(uint64_t step, uint32_t rank) const {
  for (const Part& part : all())
    if (part.rank == rank && part.step != step && !part.is_done()) move(part, Taking::done);
}

Status Parts::complete(uint64_t step, uint32_t rank) const {
  bool takes_part = false;
  for (const Part& part : all()) {
    if (part.rank != rank || part.step != step || part.file.empty()) continue;
    takes_part = true;
    if (!part.is_done()) move(part, Taking::done);
  }
  return takes_part ? Status() : put({"", step, rank, Taking::done});
}

Status Parts::completed(const LocalName& name, std::optional<uint32_t> rank) const {
  const Part done{text_for(name), name.step, rank, Taking::done};
  if (rank)
    for (const Taking before : not_done) remove({done.file, done.step, rank, before});
  return put(done);
}

bool Parts::any_at_work(const LocalName& name) const {
  const auto parts = all();
  const auto of_file = [&](const Part& part) { return part.is_of(name); };
  if (std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return of_file(part) && part.is_done() && !part.rank; })) return false;
  return std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return of_file(part) && !part.is_done(); });
}

}  // namespace holdfast::checkpoint
