#include "cli/files/versions.hpp"

#include <cerrno>
#include <tuple>

#include <fmt/format.h>

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

std::string command_for(Asked asked, uint64_t step) {
  switch (asked) {
    case Asked::bytes: return fmt::format("its checkpoint becomes plain with: holdfast checkpoints --drain {}, or --drain {} DIR", step, step);
    case Asked::check: return "all of them are verified with: holdfast checkpoints --verify";
    default: return fmt::format("its checkpoint is removed as a whole, with: holdfast checkpoints --drop {}", step);
  }
}

}  // namespace

Status or_of_checkpoint(const std::string& path, const Status& answered, Asked asked, const Settings& settings) {
  const auto version = answered.kind() == Kind::not_found ? version_at(path, settings) : std::nullopt;
  if (!version) return answered;
  const uint64_t step = version->manifest.version->step;
  const bool is_plain = catalog::kind_of(path_from_here(path)) == catalog::PathKind::plain;
  const char* const what = is_plain ? "a plain file, and one" : "a file";
  return Status(Kind::not_found, fmt::format("{} is {} of checkpoint {} on the nodes: {}", path, what, step, command_for(asked, step)), ENOENT);
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
