// holdfast ls [DIR or TARGET]…: the protected files of a directory, or those that a target set holds.
#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/node_path.hpp"
#include "base/shell_word.hpp"
#include "catalog/versions.hpp"
#include "cli/command.hpp"
#include "cli/files/merge_parts.hpp"
#include "cli/files/report.hpp"
#include "cli/files/sets.hpp"
#include "cli/files/versions.hpp"
#include "cli/output.hpp"
#include "file/left_parts.hpp"

namespace holdfast::cli {

namespace {

struct LsOptions {
  std::vector<std::string> places;
  bool json = false;
  SettingsOptions settings;
};

struct Row {
  std::string path;
  Result<engine::FileStatus> status;
  bool is_unjoined = false;  // a plain file, of which replicas have parts
};

constexpr std::string_view sidecar_suffix = ".holdfast";

// Names of a directory's files, those that only a sidecar remembers included.
Result<std::set<std::string>> candidates(const std::string& directory) {
  std::set<std::string> names;
  DIR* dir = ::opendir(directory.c_str());
  if (!dir) return Status::from_errno(errno, directory + " cannot be listed");
  while (dirent* entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    const bool sidecar = name.size() > sidecar_suffix.size() + 1 && name[0] == '.' && name.ends_with(sidecar_suffix);
    if (sidecar) names.insert(name.substr(1, name.size() - 1 - sidecar_suffix.size()));
    else if (name != "." && name != "..") names.insert(name);
  }
  ::closedir(dir);
  return names;
}

Row row_of(const std::string& path, const Settings& settings) {
  auto located = catalog::locate(path, settings);
  if (!located) return {path, located.status()};
  return {path, engine::file_status(*located, settings)};
}

Row unjoined(const std::string& path) { return {path, Status(Kind::busy, said_of_parts(path)), true}; }

Result<std::vector<Row>> rows_of_directory(const std::string& directory, const Settings& settings) {
  auto names = candidates(directory);
  if (!names) return names.status();
  std::vector<Row> rows;
  for (const std::string& name : *names) {
    const std::string path = directory + "/" + name;
    if (catalog::kind_of(path) == catalog::PathKind::protected_file) rows.push_back(row_of(path, settings));
  }
  for (const std::string& name : file::files_with_left_parts(directory)) rows.push_back(unjoined(directory + "/" + name));
  return rows;
}

// What a removal could not reach keeps its path, where another file may have been made since.
Row row_of_manifest(const layout::Manifest& manifest, const std::string& target, const Settings& settings) {
  const auto located = catalog::locate(manifest.path, settings);
  if (!located) return {manifest.path, located.status()};
  if (located->manifest.file_id == manifest.file_id) return {manifest.path, engine::file_status(*located, settings)};
  return {
      manifest.path,
      Status(Kind::exists,
             fmt::format("{}/{} is left of a file that had this path before and was removed while the target was away; nothing needs it: rm -r {}",
                         target, manifest.directory, shell_word(target + "/" + manifest.directory)))};
}

Result<std::vector<Row>> rows_of_target(const std::string& target, const Settings& settings) {
  auto set = open_set({target}, settings);
  if (!set) return set.status();
  auto manifests = catalog::list_set(*set);
  if (!manifests) return manifests.status();
  std::vector<Row> rows;
  // A path whose own directory is gone is found by way of the set.
  Settings with_set = settings;
  with_set.targets = {target};
  for (const layout::Manifest& m : *manifests) rows.push_back(row_of_manifest(m, target, with_set));
  if (const auto versions = catalog::VersionList().look({target}, settings.deadline_ms))
    for (const catalog::FoundVersion& one : *versions) rows.push_back({one.manifest.path, status_of_version(one.manifest, settings)});
  return rows;
}

Result<std::vector<Row>> rows_of(const std::string& place, const Settings& settings) {
  struct stat st = {};
  if (names_a_node(place) && is_target(place)) return rows_of_target(place, settings);
  if (::stat(place.c_str(), &st) == 0 && S_ISDIR(st.st_mode))
    return is_target(place) ? rows_of_target(place, settings) : rows_of_directory(place, settings);
  if (catalog::kind_of(place) == catalog::PathKind::protected_file) return std::vector<Row>{row_of(place, settings)};
  if (file::has_left_parts(place)) return std::vector<Row>{unjoined(place)};
  return Status(Kind::not_found, fmt::format("{} is neither a directory nor a protected file", place));
}

void print_rows(const std::vector<Row>& rows) {
  Table table({"health", ">size", "scheme", "placement", "path"});
  for (const Row& row : rows) {
    if (!row.status) {
      table.add({row.is_unjoined ? "not joined" : "unknown", "-", "-", "-", row.path}, {Colour::bad});
      continue;
    }
    const layout::Manifest& m = row.status->manifest;
    table.add({engine::health_name(row.status->health), human_bytes(m.size), m.geometry.scheme.name(), layout::placement_name(m.geometry.placement),
               m.version ? fmt::format("{} (checkpoint {}, attempt {})", row.path, m.version->step, m.version->attempt.number) : row.path},
              {colour_of(row.status->health)});
  }
  table.print("");
}

int ls(const LsOptions& options) {
  auto settings = options.settings.load();
  if (!settings) return fail(settings.status());
  int code = exit_ok;
  std::vector<Row> all;
  for (const std::string& place : options.places.empty() ? std::vector<std::string>{"."} : options.places) {
    std::string whole = path_from_here(place == "." ? "" : place);
    while (whole.size() > 1 && whole.ends_with('/')) whole.pop_back();
    auto rows = rows_of(whole, *settings);
    if (rows)
      for (Row& row : *rows) all.push_back(std::move(row));
    else code = std::max(code, fail_for(place, rows.status()));
  }
  if (options.json) {
    nlohmann::json files = nlohmann::json::array();
    for (const Row& row : all) files.push_back(row.status ? json_of(*row.status) : json_of_failure(row.path, row.status.status()));
    print_json({{"files", files}});
  } else if (!all.empty()) {
    print_rows(all);
    std::fflush(stdout);
  }
  for (const Row& row : all)
    if (!row.status) code = std::max(code, fail_for(row.path, row.status.status()));
  return code;
}

}  // namespace

void add_ls(CLI::App& app, int& code) {
  auto options = std::make_shared<LsOptions>();
  CLI::App* sub = app.add_subcommand("ls", "List protected files of a directory, or those that a target holds");
  sub->add_option("PLACE", options->places, "Directories, targets or files (the current directory)")->type_name("");
  sub->add_flag("--json", options->json, "The same facts for a machine");
  options->settings.add_finding(*sub);
  sub->footer("Example:\n  holdfast ls results/\n  holdfast ls /mnt/a");
  sub->callback([options, &code] { code = ls(*options); });
}

}  // namespace holdfast::cli
