// holdfast export SRC DST: a protected file's bytes into a plain file.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/say.hpp"
#include "catalog/entry.hpp"
#include "catalog/give_way.hpp"
#include "cli/command.hpp"
#include "cli/files/copy.hpp"
#include "cli/files/versions.hpp"
#include "cli/job/program.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

namespace {

struct ExportOptions {
  std::string source, destination;
  bool force = false, json = false;
  SettingsOptions settings;
};

// DST itself, or DST/NAME where DST is a directory, as cp has it.
std::string destination_path(const ExportOptions& options) {
  struct stat st = {};
  const std::string whole = path_from_here(options.destination);
  if (::stat(whole.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return whole + "/" + base_name(options.source);
  return whole;
}

Status check_destination(const std::string& destination, bool force) {
  switch (catalog::kind_of(destination)) {
    case catalog::PathKind::absent:
    case catalog::PathKind::empty: return Status();
    case catalog::PathKind::protected_file:
      return Status(Kind::exists, fmt::format("{} is a protected file: export to another name, or remove it with holdfast rm", destination));
    case catalog::PathKind::plain:
      if (force) return Status();
      return Status(Kind::exists, fmt::format("{} exists: choose another name, or replace it with --force", destination));
    default: return Status(Kind::invalid, fmt::format("{} cannot be replaced by a file: choose another name", destination));
  }
}

// By way of a file beside it, so that DST is the old one or the whole new one.
Result<uint64_t> export_file(const ExportOptions& options, const std::string& destination, const Settings& settings) {
  HF_TRY(check_destination(destination, options.force));
  auto opened = open_to_read(path_from_here(options.source), settings);
  if (!opened) return or_of_checkpoint(options.source, opened.status(), Asked::bytes, settings);
  engine::ProtectedFile& file = **opened;
  std::string temporary = directory_of(destination) + "/.export-XXXXXX";  // short however long the file's name is
  Descriptor out(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!out.open()) return Status::from_errno(errno, destination + " cannot be created");
  ::fchmod(out.get(), catalog::mode_at_path(file.located().manifest));
  ProgressBar bar("export " + options.source);
  Status status = copy_out(file, out.get(), destination, bar.callback());
  if (status && ::rename(temporary.c_str(), destination.c_str()) != 0) status = Status::from_errno(errno, destination + " cannot be created");
  if (!status) {
    ::unlink(temporary.c_str());
    return status;
  }
  return file.size();  // as it was when the last byte was read
}

int run_export(const ExportOptions& options) {
  catch_interrupts();  // before anything is made that would have to be cleaned away
  auto settings = options.settings.load();
  if (!settings) return fail(settings.status());
  const std::string destination = destination_path(options);
  auto bytes = export_file(options, destination, *settings);
  if (!bytes) return interrupted() ? fail(bytes.status(), exit_stopped) : fail_for(options.source, bytes.status(), *settings);
  if (options.json) print_json({{"source", path_from_here(options.source)}, {"destination", destination}, {"bytes", *bytes}});
  else show("{} exported to {} ({})\n", options.source, destination, human_bytes(*bytes));
  return exit_ok;
}

}  // namespace

void add_export(CLI::App& app, int& code) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* sub = app.add_subcommand("export", "Copy a protected file into a plain one");
  sub->add_option("SRC", options->source, "Protected file")->required()->type_name("");
  sub->add_option("DST", options->destination, "Plain file or directory")->required()->type_name("");
  sub->add_flag("--force", options->force, "Replace DST where it exists");
  sub->add_flag("--json", options->json, "The outcome for a machine");
  options->settings.add_finding(*sub);
  sub->footer("Example:\n  holdfast export out.dat /home/me/out.dat");
  sub->callback([options, &code] { code = run_export(*options); });
}

}  // namespace holdfast::cli
