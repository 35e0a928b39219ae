// What all subcommands share: their options that are settings, their errors and their exit codes.
#pragma once
#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/catalog.hpp"
#include "engine/maintenance.hpp"

namespace holdfast {
struct Record;
}

namespace holdfast::cli {

// The worst of several files is the command's.
enum Exit : int {
  exit_ok = 0,          // healthy, done
  exit_degraded = 1,    // everything can be read; redundancy is missing
  exit_lost = 2,        // something cannot be read; `run`: refused, nothing was started
  exit_error = 3,       // the command could not do what it was asked
  exit_stranded = 123,  // `run`: the program ended well, but files that nodes' disks alone hold could not be brought to their paths
  exit_stopped = 130,   // by the user; run it again to go on
};

// Options that are settings, collected while the line is parsed and applied over environment and file
// afterwards.
class SettingsOptions {
 public:
  // The option of a setting, as its record says it ("--striping-unit" of "striping_unit"); `help` and `value` where this command means another thing.
  void add(CLI::App& app, std::string_view key, const std::string& help = "", const std::string& value = "");
  void add_config(CLI::App& app);
  void add_waiting(CLI::App& app);  // for targets and locks, and how locks are taken
  // --targets, --deadline, --accept-epoch, --config: what finding a file needs.
  void add_finding(CLI::App& app);
  // --protect, --targets, --placement, the striping options, --allow-shared-target: what making a file needs.
  void add_making(CLI::App& app);
  Result<Settings> load() const;
  const std::string& config() const { return config_; }  // --config

 private:
  CLI::Option* add_globs(CLI::App& app, const Record& record, const std::string& help);

  std::vector<std::pair<std::string, std::string>> given_;
  std::string config_;
};

// Prints "holdfast: <sentence>" and answers the exit code for it.
int fail(const Status& status, int code = exit_error);
// The same for one of several paths: the sentence begins with the path where it does not name it yet. A protected file that lacks nodes out of reach
// is not called lost, unless it is lost without them; `settings` say how to find it.
int fail_for(const std::string& path, const Status& status, const Settings& settings = {});
// What was asked cannot be served from what is reachable, as opposed to a mistake of the user's.
int code_of(const Status& status);
int code_of(engine::Health health);
// The line that starts the agent of a target's node.
std::string how_to_reach(const std::string& address);

std::string path_from_here(const std::string& path);
// The same of a pattern with fields and wildcards. Those of the working directory are none.
std::string pattern_from_here(const std::string& pattern);
void print_json(const nlohmann::json& json);

nlohmann::json json_of(const engine::FileStatus& status);

// Set by SIGINT and SIGTERM once catch_interrupts was called: long work asks and ends in order.
bool interrupted();
void catch_interrupts();

// Each subcommand adds itself. Its work is done in the parse's callback, which leaves the exit code in
// `code`. `run` takes all that follows its own options as they are: the program's line never comes under
// CLI11's eyes.
void add_run(CLI::App& app, int& code, const std::vector<std::string>& program);
// Index in `arguments` (without the command's own name) at which a run's program begins; their number where
// there is none.
size_t program_of_run(const CLI::App& app, const std::vector<std::string>& arguments);
void add_status(CLI::App& app, int& code);
void add_verify(CLI::App& app, int& code);
void add_repair(CLI::App& app, int& code);
void add_export(CLI::App& app, int& code);
void add_drain(CLI::App& app, int& code);
void add_import(CLI::App& app, int& code);
void add_ls(CLI::App& app, int& code);
void add_rm(CLI::App& app, int& code);
void add_cat(CLI::App& app, int& code);
void add_targets(CLI::App& app, int& code);
void add_merge(CLI::App& app, int& code);
void add_plan(CLI::App& app, int& code);
void add_report(CLI::App& app, int& code);
void add_advise(CLI::App& app, int& code);
void add_doctor(CLI::App& app, int& code);
void add_agents(CLI::App& app, int& code);
void add_checkpoints(CLI::App& app, int& code);
void add_settings(CLI::App& app, int& code);
void add_completion(CLI::App& app, int& code);

// Of the whole tree of commands: what may follow `words` (completion.cpp), and a manual page of each.
int complete(const CLI::App& app, std::vector<std::string> words);
int write_man_pages(const CLI::App& app, const std::string& directory);
int print_man_of_settings(const CLI::App& app);

}  // namespace holdfast::cli
