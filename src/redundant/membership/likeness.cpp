#include "redundant/membership/likeness.hpp"

#include <utility>

#include <fmt/format.h>

namespace holdfast::redundant {

namespace {

constexpr std::string_view of_program = "program", of_holdfast = "holdfast", of_processor = "processor", of_library = "library";

std::string line_of(std::string_view kind, std::string_view first, std::string_view second = "") {
  return fmt::format("{}{}\t{}\t{}\n", About::mark, kind, first, second);
}

std::string_view next_word(std::string_view& line) {
  const size_t tab = line.find('\t');
  const std::string_view word = line.substr(0, tab);
  line.remove_prefix(tab == std::string_view::npos ? line.size() : tab + 1);
  return word;
}

std::string refusal_of(const About& about, int first, const About& its) {
  if (about.holdfast != its.holdfast) return fmt::format("runs Holdfast {}, and team {} runs {}", about.holdfast, first, its.holdfast);
  if (about.content == its.content) return "";
  if (about.program == its.program) return fmt::format("runs another program than team {}: {} has another content there", first, its.program);
  return fmt::format("runs another program than team {}: {}, and {} there", first, about.program, its.program);
}

}  // namespace

std::string line_of_program(std::string_view path, std::string_view content) { return line_of(of_program, path, content); }
std::string line_of_holdfast(std::string_view version) { return line_of(of_holdfast, version); }
std::string line_of_processor(std::string_view name) { return line_of(of_processor, name); }
std::string line_of_library(std::string_view name, std::string_view id) { return line_of(of_library, name, id); }

void About::take(std::string_view line) {
  if (!line.empty() && line[0] == mark) line.remove_prefix(1);
  const std::string_view kind = next_word(line), first = next_word(line), second = next_word(line);
  if (kind == of_program) program = first, content = second;
  if (kind == of_holdfast) holdfast = first;
  if (kind == of_processor) processor = first;
  if (kind == of_library) libraries.emplace(first, second);
}

Likeness::Found Likeness::joined(int team, int rank, const About& about) {
  const auto [at, is_first] = first_.try_emplace(rank, team, about);
  if (is_first || at->second.first == team) return {};
  const auto& [first, its] = at->second;
  Found found{.refusal = refusal_of(about, first, its), .warning = {}};
  if (!found.refusal.empty()) return found;
  if (const auto said = said_of_libraries(team, about, first, its)) found.warning = *said;
  else if (const auto processors = said_of_processors(team, about, first, its)) found.warning = *processors;
  return found;
}

std::optional<std::string> Likeness::said_of_libraries(int team, const About& about, int first, const About& its) {
  for (const auto& [name, id] : about.libraries) {
    const auto other = its.libraries.find(name);
    if (other == its.libraries.end() || other->second == id || told_of_libraries_) continue;
    told_of_libraries_ = true;
    return fmt::format("team {} has another {} than team {}: what they compute may have other last bits, and the job is stopped where it has", team,
                       name, first);
  }
  return {};
}

std::optional<std::string> Likeness::said_of_processors(int team, const About& about, int first, const About& its) {
  if (about.processor == its.processor || std::exchange(told_of_processors_, true)) return {};
  return fmt::format(
      "team {} runs on another processor ({}) than team {} ({}): what they compute may have other last bits, and the job is stopped where it has",
      team, about.processor, first, its.processor);
}

}  // namespace holdfast::redundant
