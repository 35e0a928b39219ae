// holdfast rm PATH…: a protected file, its units on every target that can be reached, its sidecar and its path; or what the nodes keep of files of checkpoints.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/say.hpp"
#include "catalog/entry.hpp"
#include "cli/command.hpp"
#include "cli/files/drop.hpp"
#include "cli/files/versions.hpp"

namespace holdfast::cli {

namespace {
struct RmOptions {
  std::vector<std::string> paths;
  bool force = false;
  SettingsOptions settings;
};

// What cannot be removed now is named, for it stays when its target comes back.
void name_leftovers(const catalog::Located& located) {
  for (const catalog::Member& m : located.members)
    if (!m.usable() && !located.single()) say("holdfast: {} cannot be reached and keeps {}/\n", m.path, located.manifest.directory);
}

// `of_checkpoints`: files that are no protected ones, and have versions on the nodes. A checkpoint goes as a whole: it is removed when all paths are known.
Status remove_one(const std::string& path, const Settings& settings, bool force, std::vector<std::string>& of_checkpoints) {
  auto located = catalog::locate(path, settings);
  if (!located && located.status().kind() == Kind::not_found && !catalog::is_torn_creation(path)) {
    if (version_at(path, settings)) return of_checkpoints.push_back(path), Status();
    if (force && catalog::kind_of(path) == catalog::PathKind::absent) return Status();
    return Status(Kind::not_found, fmt::format("{} is not a protected file: remove it with rm", path));
  }
  const bool link_alone = catalog::is_second_name(catalog::look_at_entry(path), path);
  HF_TRY(catalog::remove(path, settings));
  if (located && !link_alone) name_leftovers(*located);
  return Status();
}

int rm(const RmOptions& options) {
  auto settings = options.settings.load();
  if (!settings) return fail(settings.status());
  int code = exit_ok;
  std::vector<std::string> of_checkpoints;
  for (const std::string& path : options.paths)
    if (Status status = remove_one(path_from_here(path), *settings, options.force, of_checkpoints); !status)
      fail_for(path, status), code = exit_error;
  for (const std::string& path : of_checkpoints)
    if (catalog::kind_of(path) == catalog::PathKind::plain) say("holdfast: {} is a plain file as well, which stays: remove it with rm\n", path);
  return of_checkpoints.empty() ? code : std::max(code, drop_named(of_checkpoints, *settings));
}
}  // namespace

void add_rm(CLI::App& app, int& code) {
  auto options = std::make_shared<RmOptions>();
  CLI::App* sub = app.add_subcommand("rm", "Remove protected files from their targets and their path, and files of checkpoints from their nodes");
  sub->add_option("PATH", options->paths, "Protected files, or all files of a checkpoint")->required()->type_name("");
  sub->add_flag("-f,--force", options->force, "A path that does not exist is no error");
  options->settings.add_finding(*sub);
  sub->footer("Example:\n  holdfast rm old.dat");
  sub->callback([options, &code] { code = rm(*options); });
}

}  // namespace holdfast::cli
