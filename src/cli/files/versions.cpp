#include "cli/files/versions.hpp"

#include <cerrno>
#include <tuple>

#include <fmt/format.h>

#include "base/shell_word.hpp"
#include "catalog/pool.hpp"
#include "checkpoint/protect.hpp"
#include "cli/command.hpp"
#include "cli/job/agents.hpp"

namespace holdfast::cli {

std::vector<std::string> nodes_of(const Settings& settings) { return settings.local.empty() ? known_directories() : settings.local; }

std::optional<catalog::FoundVersion> version_at(const std::string& path, const Settings& settings) {
  const std::string whole = path_from_here(path);
  const auto nodes = nodes_of(settings);
  if (nodes.empty() || catalog::kind_of(whole) == catalog::PathKind::protected_file) return {};
  const auto found = catalog::VersionList().look(nodes, settings.deadline_ms);
  if (!found) return {};
  const auto order = [](const catalog::FoundVersion& one) {
    const layout::Version& version = *one.manifest.version;
    return std::make_tuple(version.run, version.attempt, version.number, one.readable(), -int64_t(one.missing_members));
  };
  const catalog::FoundVersion* newest = nullptr;
  for (const catalog::FoundVersion& one : *found)
    if (one.manifest.version->file == whole && (!newest || order(*newest) < order(one))) newest = &one;
  return newest ? std::optional(*newest) : std::nullopt;
}

namespace {

// `what`: a checkpoint's number, or the path of a file that is protected by itself.
std::string command_for(Asked asked, const std::string& what, const char* whose) {
  if (asked == Asked::check) return "all of them are verified with: holdfast checkpoints --verify";
  return fmt::format("{} becomes plain with: holdfast checkpoints --drain {}, or --drain {} DIR", whose, what, what);
}

}  // namespace

Status or_of_checkpoint(const std::string& path, const Status& answered, Asked asked, const Settings& settings) {
  const auto version = answered.kind() == Kind::not_found ? version_at(path, settings) : std::nullopt;
  if (!version) return answered;
  const layout::Version& found = *version->manifest.version;
  const std::string of = found.is_single() ? "that is protected by itself" : fmt::format("of checkpoint {}", found.step);
  const std::string which = found.is_single() ? shell_word(path) : std::to_string(found.step);
  const char* const what = catalog::kind_of(path_from_here(path)) == catalog::PathKind::plain ? "a plain file, and one" : "a file";
  const char* const whose = found.is_single() ? "it" : "its checkpoint";
  return Status(Kind::not_found, fmt::format("{} is {} {} on the nodes: {}", path, what, of, command_for(asked, which, whose)), ENOENT);
}

Result<engine::FileStatus> status_of_version(const layout::Manifest& version, const Settings& settings) {
  auto status = engine::file_status(catalog::locate_version(version, settings), settings);
  if (status && version.within) status->manifest = version;
  return status;
}

bool lacks_something(const catalog::FoundVersion& version, const Settings& settings) {
  if (version.missing_members > 0) return true;
  const auto report =
      engine::verify(catalog::locate_version(version.manifest, settings), settings, [](uint64_t, uint64_t) { return !interrupted(); });
  return !report || report->finding_count > 0 || report->status.health != engine::Health::healthy;
}

Result<bool> renew_version(const catalog::FoundVersion& version, const std::vector<std::string>& live, const Settings& settings) {
  if (!lacks_something(version, settings)) return false;
  HF_TRY(checkpoint::renew(version.manifest, live, settings));
  return true;
}

}  // namespace holdfast::cli
