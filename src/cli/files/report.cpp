#include "cli/files/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/say.hpp"
#include "base/shell_word.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

namespace {

std::string health_line(const engine::FileStatus& s) {
  const std::string name = coloured(engine::health_name(s.health), colour_of(s.health));
  if (s.health == engine::Health::lost) return name + ": more is gone than the code tolerates";
  if (s.health == engine::Health::unknown) return name + ": too much is out of reach to tell whether anything is lost";
  if (s.tolerates_more == 0) return name + ": readable, but no further loss is tolerated";
  return fmt::format("{}: tolerates the loss of {}", name,
                     s.health == engine::Health::healthy ? plural(uint64_t(s.tolerates_more), "target") : fmt::format("{} more", s.tolerates_more));
}

// The target stands beside it already.
std::string without_path(const std::string& why, const std::string& path) { return why.starts_with(path + ": ") ? why.substr(path.size() + 2) : why; }

// In one directory the members are the parts that must lie on different nodes.
std::string place_of(const layout::Manifest& manifest, const engine::MemberReport& m) {
  const layout::Geometry& g = manifest.geometry;
  if (!g.single_directory) return m.path;
  const std::string unit = m.member < g.scheme.k ? fmt::format("data unit {}", m.member) : fmt::format("redundancy unit {}", m.member - g.scheme.k);
  const std::string nodes = layout::name_of_nodes(manifest.members[size_t(m.member)].nodes);
  return nodes.empty() ? unit : unit + " on " + nodes;
}

bool out_of_reach(const engine::MemberReport& m) { return m.state == "lost" || m.state == "unreached"; }

// The command that mends it, ready to be copied.
std::string advice(const engine::FileStatus& s) {
  if (s.manifest.version) return fmt::format("mend: holdfast checkpoints --repair {}", s.manifest.version->step);
  const std::string mend = fmt::format("holdfast repair {}", shell_word(s.manifest.path));
  const bool some_lost = std::any_of(s.members.begin(), s.members.end(), out_of_reach);
  if (s.manifest.pool && some_lost) return fmt::format("mend: {} --onto-live\n  or, once the lost nodes are back: {}", mend, mend);
  std::string replacements;
  for (const engine::MemberReport& m : s.members)
    if (out_of_reach(m) && !s.manifest.geometry.single_directory) replacements += fmt::format(" --replace {}", shell_word(m.path + "=NEW"));
  if (replacements.empty()) return "mend: " + mend;
  return fmt::format("mend: {}{}\n  or, once the lost targets are back: {}", mend, replacements, mend);
}

}  // namespace

std::string layout_line(const layout::Manifest& manifest) {
  const layout::Geometry& g = manifest.geometry;
  const std::string where = g.single_directory ? "in its own directory" : "over " + plural(uint64_t(g.members), "target");
  return fmt::format("{} {} {}, unit {}, {}", g.scheme.name(), layout::placement_name(g.placement), where, human_bytes(g.unit_bytes),
                     human_bytes(manifest.size));
}

void print_status(const engine::FileStatus& s, bool advise) {
  static bool first = true;  // an empty line between files
  if (!std::exchange(first, false)) show("\n");
  const auto& version = s.manifest.version;
  show("{}\n", version ? fmt::format("{} (checkpoint {}, attempt {})", version->file, version->step, version->attempt.number) : s.manifest.path);
  show("  {}\n  {}\n", layout_line(s.manifest), health_line(s));
  const layout::Geometry& g = s.manifest.geometry;
  Table table({">#", g.single_directory ? "of each row" : "target", "state", "why"});
  for (const engine::MemberReport& m : s.members)
    table.add({std::to_string(m.member), place_of(s.manifest, m), m.state, without_path(m.why, m.path)},
              {Colour::none, Colour::none, colour_of_state(m.state), Colour::none});
  table.print("    ");
  if (advise && s.health == engine::Health::degraded) show("  {}\n", advice(s));
  for (const engine::MemberReport& m : s.members)
    if (s.health == engine::Health::unknown && m.state == "unreached") show("  {}\n", how_to_reach(m.path));
}

int code_of(const engine::VerifyReport& r) {
  if (r.lost_rows) return r.status.health == engine::Health::unknown ? exit_error : exit_lost;
  if (r.finding_count) return std::max<int>(exit_degraded, code_of(r.status.health));
  return r.stopped ? int(exit_stopped) : code_of(r.status.health);
}

uint64_t damages_in(const engine::VerifyReport& r) { return r.finding_count - std::min(r.finding_count, r.lost_rows - r.gone_rows); }

nlohmann::json json_of_failure(const std::string& path, const Status& status) {
  return {{"path", path_from_here(path)}, {"error", status.sentence()}, {"kind", kind_name(status.kind())}};
}

void FileReports::failed(const std::string& path, const Status& status) { add(fail_for(path, status), json_of_failure(path, status)); }

void FileReports::add(int code, nlohmann::json facts) {
  code_ = std::max(code_, code);
  files_.push_back(std::move(facts));
}

int FileReports::end() const {
  if (json_) print_json({{"files", files_}});
  return code_;
}

}  // namespace holdfast::cli
