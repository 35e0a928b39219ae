// holdfast run … LAUNCHER …: checks what was asked, then becomes the launcher with the library preloaded.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/launcher.hpp"
#include "cli/program.hpp"
#include "layout/geometry.hpp"

namespace holdfast::cli {

namespace {

struct Options {
  std::vector<std::string> command;
  std::string library;
  SettingsOptions settings;
};

constexpr int refused = exit_lost;

// Everything that can be known before the job starts; nothing is made where any of it fails.
Status check_settings(const Settings& settings) {
  HF_TRY(settings.check());
  if (!settings.protects()) return Status();
  if (auto scheme = layout::Scheme::parse(*settings.protect); !scheme) return scheme.status();
  if (settings.targets.empty()) return Status();
  return catalog::open_or_create_set(settings.targets, settings).status();
}

// Open MPI hands remote processes only what -x names. MPICH and srun hand on everything.
void forward_environment(std::vector<std::string>& command, const std::vector<std::string>& names) {
  std::vector<std::string> options;
  for (const std::string& name : names) {
    options.emplace_back("-x");
    options.push_back(name);
  }
  command.insert(command.begin() + 1, options.begin(), options.end());
}

std::string preload(const std::string& library) {
  const std::string there = environment_variable("LD_PRELOAD");
  return there.empty() ? library : library + ":" + there;
}

int become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  return fail(Status::from_errno(errno, command[0] + " cannot be started"), refused);
}

int run(Options& options) {
  if (!options.command.empty() && options.command[0] == "--") options.command.erase(options.command.begin());
  if (options.command.empty())
    return fail(Status(Kind::invalid, "no program to run: holdfast run [OPTIONS] mpirun -n 4 ./app"), refused);
  auto settings = options.settings.load();
  if (!settings) return fail(settings.status(), refused);
  if (!find_on_path(options.command[0]))
    return fail(Status(Kind::not_found, fmt::format("{} is not found: give its path, or check PATH", options.command[0])), refused);
  const Mpi mpi = detect_mpi(options.command);
  auto library = find_library(mpi, options.library);
  if (!library) return fail(library.status(), refused);
  if (Status checked = check_settings(*settings); !checked) return fail(checked, refused);

  std::vector<std::string> names = {"LD_PRELOAD"};
  for (const auto& [name, value] : settings->environment()) {
    ::setenv(name.c_str(), value.c_str(), 1);
    names.push_back(name);
  }
  ::setenv("LD_PRELOAD", preload(*library).c_str(), 1);
  if (mpi.launcher && mpi.name.starts_with("openmpi")) forward_environment(options.command, names);
  return become(options.command);
}

}  // namespace

void add_run(CLI::App& app, int& code) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("run", "Run a program with its files protected");
  SettingsOptions& s = options->settings;
  s.add_making(*sub);
  s.add(*sub, "--path", "path", "Only files that match this glob (repeatable); without '/' it matches names");
  s.add(*sub, "--close", "close", "durable: close waits for the devices; fast: it does not (durable)");
  s.add(*sub, "--accept-epoch", "accept_epoch", "Serve this old epoch where nothing newer can be reached");
  s.add(*sub, "--log-dir", "log_directory", "Directory for the job's log");
  sub->add_option("--library", options->library, "Library to preload: a path, or a name (openmpi4, mpich4, posix)");
  sub->prefix_command();
  sub->footer("Example:\n"
              "  holdfast run --protect rs:4+2 --targets /mnt/a,/mnt/b,/mnt/c,/mnt/d,/mnt/e,/mnt/f mpirun -n 4 ./app\n"
              "Exit status: the program's; 2 where the settings were refused and nothing was started.");
  sub->callback([options, sub, &code] {
    options->command = sub->remaining();
    code = run(*options);
  });
}

}  // namespace holdfast::cli
