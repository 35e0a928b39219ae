// holdfast run … LAUNCHER …: checks what was asked, then becomes the launcher with the library preloaded. It stays beside the launcher where
// something is to be done at the job's end.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>

#include "base/node_path.hpp"
#include "base/raw_syscalls.hpp"
#include "base/say.hpp"
#include "base/settings/record.hpp"
#include "base/settings/text.hpp"
#include "base/shell_word.hpp"
#include "catalog/executable.hpp"
#include "catalog/hidden_names.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/run.hpp"
#include "cli/command.hpp"
#include "cli/job/agents.hpp"
#include "cli/job/agents_in_use.hpp"
#include "cli/job/checkpointed.hpp"
#include "cli/job/env_words.hpp"
#include "cli/job/job_environment.hpp"
#include "cli/job/job_nodes.hpp"
#include "cli/job/launcher.hpp"
#include "cli/job/live_jobs.hpp"
#include "cli/job/measure.hpp"
#include "cli/job/node_name.hpp"
#include "cli/job/pool.hpp"
#include "cli/job/program.hpp"
#include "cli/job/restart_hosts.hpp"
#include "cli/log/job.hpp"
#include "cli/log/job_log.hpp"
#include "cli/redundant/teams.hpp"
#include "redundant/child.hpp"
#include "redundant/map.hpp"
#include "redundant/orders.hpp"
#include "service/output_gatherer.hpp"

namespace holdfast::cli {

namespace {

struct RunOptions {
  std::vector<std::string> command;
  std::string library;
  std::string log;  // --log
  bool measure = false, json = false;
  int simulated_nodes = 0;
  int replicas = 1;
  std::optional<int> relaunches;
  std::string relaunch_log = "256MiB";  // of each rank
  std::string spare_hosts;
  std::string restart_command;
  std::string node_name;
  std::string compare = "files";
  bool rehearses = false;
  PoolOptions pool;
  CheckpointOptions checkpoints;
  Mpi mpi;
  SettingsOptions settings;
};

constexpr int refused = exit_lost;

// One who goes on from checkpoints wants teams to come back.
int relaunches_of(const RunOptions& options, const Settings& settings) {
  const bool goes_on = !options.restart_command.empty() || !options.checkpoints.restart_with.empty() || !settings.checkpoint.empty();
  return options.relaunches.value_or(options.replicas > 1 && goes_on ? 1 : 0);
}

Status check_relaunch(const RunOptions& options) {
  constexpr uint64_t least = 1024;
  const auto bytes = parse_size(options.relaunch_log);
  if (!bytes || *bytes < least) return Status(Kind::invalid, "--relaunch-log is '" + options.relaunch_log + "': allowed is a size from 1KiB on");
  if (options.relaunches.value_or(0) > 0 && options.replicas < 2)
    return Status(Kind::invalid, "--relaunch is about teams of --replicas: give that too, or --restarts for a job that is there once");
  return Status();
}

// Of teams that are started again. Those of --restart-with go on from a checkpoint as well.
const std::string& restart_command_of(const RunOptions& options) {
  static const std::string none;
  const std::string& with = options.checkpoints.restart_with;
  const bool suits = options.restart_command.empty() && with.find("{nodes}") == std::string::npos;
  return suits ? with : options.restart_command.empty() ? none : options.restart_command;
}

// All teams have one environment.
Status check_variables(const std::vector<std::string>& variables) {
  for (const std::string& variable : variables)
    if (const size_t sign = variable.find('='); environment_variable(variable.substr(0, sign).c_str()) != variable.substr(sign + 1))
      return Status(Kind::invalid, fmt::format("--restart-command sets {}, and the command does not: write it before 'holdfast run'", variable));
  return Status();
}

Status check_restart_command(const RunOptions& options, const Settings& settings) {
  const std::string& text = options.restart_command;
  if (text.empty()) return Status();
  if (options.replicas < 2)
    return Status(Kind::invalid, "--restart-command is about teams of --replicas: give that too, or --restart-with for a job that is there once");
  if (options.relaunches.value_or(1) == 0)
    return Status(Kind::invalid, "--restart-command is about teams that are started again: give --relaunch 1 too");
  if (text.find("{nodes}") != std::string::npos)
    return Status(Kind::invalid,
                  "--restart-command has no {nodes}: a team that is started again gets the hosts of the lost one; write them as in the command");
  if (settings.checkpoint.empty() && text.find("{step}") != std::string::npos)
    return Status(Kind::invalid, "{step} in --restart-command is a checkpoint's: name them with --checkpoint 'ck/ck.{step}.{rank}'");
  const auto words = restart_words("--restart-command", text, step_mark, {});
  return words ? check_variables(env_words(*words).variables) : words.status();
}

// Everything that can be known before the job starts; nothing is made where any of it fails.
Result<std::string> check(const Settings& settings, const RunOptions& options) {
  HF_TRY(settings.check());
  HF_TRY(check_relaunch(options));
  HF_TRY(check_restart_command(options, settings));
  HF_TRY(check_teams({options.replicas,
                      options.command,
                      {},
                      options.mpi,
                      options.compare,
                      relaunches_of(options, settings),
                      0,
                      options.rehearses,
                      options.spare_hosts,
                      {},
                      {}},
                     settings));
  const std::string& first = options.command[0];
  if (!find_on_path(first)) return Status(Kind::not_found, fmt::format("{} is not found: give its path, or check PATH", first));
  auto library = find_library(options.mpi, options.library);
  return library && (settings.profile_mpi || options.replicas > 1) ? with_all_calls(*library) : library;
}

// Where the job's files may be: here, and where its arguments and patterns lead, up to the first wildcard.
std::set<std::string> likely_directories(const Settings& settings, const std::vector<std::string>& command) {
  std::set<std::string> directories;
  auto add = [&](const std::string& text) {
    const std::string plain = text.substr(0, text.find_first_of("*?["));
    directories.insert(catalog::parent_of(catalog::absolute_path(plain.substr(0, plain.rfind('/') + 1) + "any")));
  };
  add("");
  for (const std::string& glob : settings.path_globs) add(text::unescaped(glob.substr(0, text::find_unescaped(glob, "*?["))));
  for (size_t i = 1; i < command.size(); ++i) add(command[i]);
  return directories;
}

// Where no target answers, a file that lies on them knows that they are not to be made.
Status open_targets(const Settings& settings, const std::vector<std::string>& command) {
  if (!settings.protects() || settings.targets.empty()) return Status();
  const Status status = catalog::open_or_create_set(settings.targets, settings).status();
  if (status.kind() != Kind::not_found) return status;
  std::vector<std::string> gone;
  for (const std::string& target : settings.targets)
    if (!names_a_node(target) && !catalog::look(target, true)) gone.push_back(path_from_here(target));
  for (const std::string& directory : likely_directories(settings, command))
    if (const std::string file = catalog::path_over_targets(directory, gone); !file.empty())
      return Status(Kind::lost,
                    fmt::format("target directory {} does not exist, and {} lies on it: bring it back (is a mount missing?), or name its new place "
                                "with --targets",
                                gone.front(), file));
  return status;
}

// A launcher that is preloaded tells of the programs that it starts; what is started here has to be told of here.
void warn_where_no_library_goes(const Settings& settings, const RunOptions& options) {
  const auto program = find_on_path(options.command[0]);
  const bool asks = settings.protects() || settings.buffers || settings.profile || settings.trace || settings.profile_mpi || !options.log.empty();
  if (asks && program && catalog::takes_no_library(program->c_str()))
    say("holdfast: {} is linked statically or runs with other rights, so its files stay plain and are not counted; link it "
        "dynamically\n",
        *program);
}

// Open MPI hands remote processes only what -x names. MPICH and srun hand on everything.
std::vector<std::string> forwarding(const std::vector<std::string>& names, const Mpi& mpi, std::vector<std::string> command) {
  if (!mpi.launcher || !mpi.name.starts_with("openmpi")) return command;
  std::vector<std::string> options;
  for (const std::string& name : names) {
    options.emplace_back("-x");
    options.push_back(name);
  }
  command.insert(command.begin() + 1, options.begin(), options.end());
  return command;
}

std::string preload(const std::string& library) {
  const std::string there = environment_variable("LD_PRELOAD");
  return there.empty() ? library : library + ":" + there;
}

// The ranks append; the file is there, and empty, before they do.
Status prepare_gathering(const Settings& settings) {
  if (settings.gather_output.empty()) return Status();
  const raw::Fd file(raw::openat(AT_FDCWD, settings.gather_output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  return file ? Status() : Status::from_errno(errno, settings.gather_output + " (--gather-output) cannot be written");
}

void end_gathering(const Settings& settings) {
  constexpr int patience_ms = 10000;
  if (!settings.gather_output.empty() && !service::gathered(settings.gather_output, patience_ms))
    say("holdfast: a process that the job has left behind still writes to {}\n", settings.gather_output);
}

// The job goes on without a profile where that has no place.
std::optional<JobLog> begin_profile(const RunOptions& options, Settings& settings) {
  if (!settings.profile && !settings.trace && !settings.profile_mpi && options.log.empty()) return std::nullopt;
  auto log = JobLog::begin(options.log, settings, options.command);
  settings.profile = log.ok();
  if (log) return std::move(*log);
  say("holdfast: the job's profile cannot be kept: {}; it goes on without (--log FILE names another place)\n", log.status().sentence());
  return std::nullopt;
}

void end_profile(JobLog& log, int code) {
  const auto written = log.finish(code);
  if (!written) (void)fail(written.status());
  else if (!log.was_named()) say("holdfast: the job's profile: holdfast report {}\n", shell_word(*written));
}

bool uses_agents(const Settings& settings) {
  return settings.protects() && (!settings.local.empty() || std::any_of(settings.targets.begin(), settings.targets.end(), names_a_node));
}

// Disks of other nodes, that is: directories of simulated ones lie where the user works, and are drained where he asks for it.
bool keeps_on_nodes(const Settings& settings, const RunOptions& options) {
  return uses_agents(settings) && (options.simulated_nodes == 0 || options.pool.drain == "end");
}

// Only what has to do something while the job runs, or once it has ended, stays beside it.
int start(const Settings& settings, const RunOptions& options, const std::vector<std::string>& exported, std::optional<JobLog>& log) {
  const std::vector<std::string> command = forwarding(exported, options.mpi, options.command);
  const bool pool = keeps_on_nodes(settings, options);
  const auto attempt = [&](const std::vector<std::string>& given, const FindBeginning& beginning) {
    const std::vector<std::string> words = options.replicas > 1 ? with_variables_set(given) : given;
    const Mpi mpi = words[0] == options.command[0] ? options.mpi : detect_mpi(words);
    const std::vector<std::string> exporting = forwarding(exported, mpi, words);
    if (options.replicas < 2) return run_to_end(exporting);
    std::vector<std::string> again;
    if (const std::string& text = restart_command_of(options); !text.empty()) {
      const auto restart = restart_words("--restart-command", text, step_mark, {});
      if (!restart) return fail(restart.status(), refused);
      const std::vector<std::string> plain = env_words(*restart).command;  // its variables are those of the command
      again = forwarding(exported, detect_mpi(plain), plain);
    }
    return run_teams({options.replicas, exporting, words, mpi, options.compare, relaunches_of(options, settings), *parse_size(options.relaunch_log),
                      options.rehearses, options.spare_hosts, std::move(again), beginning},
                     settings);
  };
  int code = -1;
  if (!settings.checkpoint.empty()) code = run_attempts(settings, options.checkpoints, options.command, options.mpi, attempt);
  else if (options.replicas > 1) code = attempt(options.command, {});
  else if (settings.gather_output.empty() && !log && !uses_agents(settings)) become(command);
  else code = run_to_end(command);
  if (code < 0) {
    const int reason = errno;
    if (log) log->discard();
    return fail(Status::from_errno(reason, command[0] + " cannot be started"), refused);
  }
  end_gathering(settings);
  if (log) end_profile(*log, code);
  return pool ? end_pool(settings, options.pool, code) : code;
}

// What ranks are to get from us: put into our environment, and the names of it, for launchers that have to be told.
std::vector<std::string> put_for_ranks(const Settings& settings, const RunOptions& options, const std::string& library,
                                       const std::optional<JobLog>& log) {
  std::vector<std::string> names = {"LD_PRELOAD"};
  if (log) {
    ::setenv("HOLDFAST_PROFILE_PIECES", log->pieces().c_str(), 1);
    names.emplace_back("HOLDFAST_PROFILE_PIECES");
  }
  if (!settings.local.empty() || std::any_of(settings.targets.begin(), settings.targets.end(), names_a_node)) {
    ::setenv("HOLDFAST_AGENTS", agents_directory().c_str(), 1);
    names.emplace_back("HOLDFAST_AGENTS");
    names.emplace_back(job_variable);
  }
  if (options.replicas > 1) {
    names.emplace_back(redundant::orders_variable);
    ::setenv("PYTHONHASHSEED", "0", 0);  // Python draws it before a rank is known, and walks its sets in that order
    names.emplace_back("PYTHONHASHSEED");
  }
  if (!settings.checkpoint.empty()) names.emplace_back(checkpoint::run_variable);
  if (!checkpoint::given_node_name().empty()) names.emplace_back(checkpoint::node_variable);
  if (!settings.checkpoint.empty() && options.replicas > 1) names.emplace_back(checkpoint::team_variable);
  for (std::string& name : put_into_environment(settings)) names.push_back(std::move(name));
  if (!options.mpi.launcher && base_name(options.command[0]) != "srun") {
    ::setenv("HOLDFAST_RANK", "0", 1);
    if (options.replicas > 1) ::setenv(redundant::ranks_before_variable, redundant::ranks_of_launchers().c_str(), 1);
  }
  ::setenv("LD_PRELOAD", preload(library).c_str(), 1);
  if (options.replicas > 1) {
    names.erase(std::remove(names.begin(), names.end(), "HOLDFAST_GATHER_OUTPUT"), names.end());
    ::unsetenv("HOLDFAST_GATHER_OUTPUT");  // the process that joins the teams has each line once
  }
  return names;
}

void say_what_nobody_protects(const Settings& settings, const RunOptions& options) {
  const bool is_nothing_named = settings.path_globs.empty() && settings.checkpoint.empty();
  if (options.mpi.name == "posix" && options.library.empty() && settings.protects() && is_nothing_named)
    say("holdfast: no MPI is found behind '{}', so nothing is protected; name plain files: --path '*.dat'; if it starts an MPI "
        "program, name the library: --library openmpi4\n",
        options.command[0]);
}

int run(RunOptions& options) {
  if (options.command.empty()) return fail(Status(Kind::invalid, "no program to run: holdfast run [OPTIONS] mpirun -n 4 ./app"), refused);
  outlive_broken_pipes();
  auto settings = options.settings.load();
  if (!settings) return fail(settings.status(), refused);
  if (const Status named = name_this_node(options.node_name); !named) return fail(named, refused);
  if (options.replicas > 1) options.command = with_variables_set(options.command);
  options.mpi = detect_mpi(options.command);
  if (std::any_of(settings->local.begin(), settings->local.end(), [](const std::string& directory) { return !names_a_node(directory); }))
    fill_in(options.pool, options.command, options.mpi);
  const auto nodes =
      options.simulated_nodes > 0 ? simulate_nodes(options.simulated_nodes, *settings, options.pool) : resolve_pool(*settings, options.pool);
  if (!nodes) return fail(nodes.status(), refused);
  options.checkpoints.simulated_nodes = options.simulated_nodes;
  options.checkpoints.with = options.pool.with;
  options.checkpoints.drain = options.pool.drain;
  options.checkpoints.teams = options.replicas;
  if (const Status sound = check_checkpoints(*settings, options.checkpoints); !sound) return fail(sound, refused);
  auto library = check(*settings, options);
  if (!library) return fail(library.status(), refused);
  if (Status opened = open_pool(*settings); !opened) return fail(opened, refused);
  LiveJob live;
  if (uses_agents(*settings)) live.begin();
  const AgentsInUse agents(uses_agents(*settings) ? *settings : Settings(), *nodes);
  if (options.measure) return measure(*settings, {options.command, options.library, options.log, options.json});
  if (Status opened = open_targets(*settings, options.command); !opened) return fail(opened, refused);
  if (Status ready = prepare_gathering(*settings); !ready) return fail(ready, refused);

  say_what_nobody_protects(*settings, options);
  warn_where_no_library_goes(*settings, options);
  std::optional<JobLog> log = begin_profile(options, *settings);
  const auto names = put_for_ranks(*settings, options, *library, log);
  return start(*settings, options, names, log);
}

void add_replicas(CLI::App& sub, RunOptions& options) {
  sub.add_option("--replicas", options.replicas,
                 "Run the program R times side by side, as one job: of each rank's R processes, all but one may be lost")
      ->type_name("R");
  sub.add_option("--relaunch", options.relaunches,
                 "With --replicas: how often a lost team may be started again; it catches up from the logs of the others (0; 1 with "
                 "--checkpoint or --restart-command)")
      ->type_name("N")
      ->check(CLI::Range(0, redundant::most_teams - redundant::most_replicas));
  sub.add_option("--restart-command", options.restart_command,
                 "Command of a team that is started again, if it then goes on from its own checkpoint. {step} stands for the number of "
                 "that checkpoint of --checkpoint")
      ->type_name("COMMAND");
  sub.add_option("--relaunch-log", options.relaunch_log, "How much each rank may log for --relaunch (256MiB)")->type_name("SIZE");
  sub.add_option("--spare-hosts", options.spare_hosts,
                 "Nodes for the ranks of a team that is started again when their own node does not answer: n8,n9")
      ->type_name("LIST");
  sub.add_option("--compare", options.compare, "With --replicas: what they compare: files, or messages (MPI messages as well) (files)")
      ->type_name("WHAT");
  sub.add_flag("--rehearse", options.rehearses,
               "With --replicas: report each difference and go on as the first one does, to find what a program does differently each "
               "time");
}

void add_pool(CLI::App& sub, PoolOptions& pool) {
  sub.add_option("--hosts", pool.hosts,
                 "The nodes of --local (else those of the allocation, or of the launcher's hosts), or those of --targets whose agents may be started")
      ->type_name("LIST|FILE");
  sub.add_option("--with", pool.with,
                 "Command that starts the agents of other nodes (in a Slurm job a job step, for a launcher's hosts 'ssh {node}')")
      ->type_name("COMMAND");
  sub.add_option("--agent-linger", pool.linger_s, "Agents that this run starts end after so many seconds without a connection (60)")
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 1000000000));
  sub.add_option("--drain", pool.drain,
                 "What becomes plain at its own path. Files that lie only on nodes' disks: with end all of them when the program "
                 "has ended (the default in an allocation), with none they are only named. Checkpoints: with last the newest whole one "
                 "at the end (the default), with every:N also each N-th one during the run, with none it is only named")
      ->type_name("WHEN");
}

void add_checkpoint_options(CLI::App& sub, CheckpointOptions& checkpoints) {
  sub.add_flag("--resume", checkpoints.resume, "Begin with the newest whole checkpoint of the last run, or from the start if there is none");
  sub.add_option("--restarts", checkpoints.restarts, "Start a job that fails again, up to N times, from its newest whole checkpoint")
      ->type_name("N")
      ->check(CLI::Range(0, 1000));
  sub.add_option("--restart-with", checkpoints.restart_with,
                 "Command of a job that is started again, if it differs from the first. {step} stands for the checkpoint that it begins "
                 "with (0: none), {nodes} for the nodes that are there: n1,n2,...")
      ->type_name("COMMAND");
  sub.add_option("--keep", checkpoints.keep, "How many whole checkpoints are kept (2)")->type_name("N")->check(CLI::Range(1, 1000));
  sub.add_option("--simulate-loss", checkpoints.simulated_loss,
                 "Lose these nodes of --simulate-nodes, with all their data, once this checkpoint is whole: 1,4@30")
      ->type_name("NODE,...@STEP");
}

}  // namespace

size_t program_of_run(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0] != "run") return arguments.size();
  const CLI::App* sub = app.get_subcommand("run");
  size_t i = 1;
  while (i < arguments.size() && arguments[i] != "--" && arguments[i].starts_with('-')) {
    const CLI::Option* option = sub->get_option_no_throw(arguments[i]);
    i += option && option->get_items_expected_max() > 0 ? 2 : 1;
  }
  return std::min(i, arguments.size());
}

void add_run(CLI::App& app, int& code, const std::vector<std::string>& program) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* sub = app.add_subcommand("run", "Run a program with its files protected");
  SettingsOptions& s = options->settings;
  for_each_record([&](const Record& record) { s.add(*sub, record.key); });
  s.add_config(*sub);
  sub->add_option("--log", options->log, "As --profile, with the log at this path; see 'holdfast report'")->type_name("FILE");
  sub->add_flag("--measure", options->measure,
                "Run the program twice, without and with the settings of 'holdfast advise', and report what they gain");
  sub->add_flag("--json", options->json, "With --measure: the result as one line of JSON at the end of standard output");
  sub->add_option("--simulate-nodes", options->simulated_nodes,
                  "Keep the files on N simulated nodes: directories ./holdfast-nodes/n1, ... on this machine, with an agent each")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  add_replicas(*sub, *options);
  add_pool(*sub, options->pool);
  sub->add_option("--node-name", options->node_name, "The name by which others call this node (Slurm's in a job step, else its short host name)")
      ->type_name("NAME");
  add_checkpoint_options(*sub, options->checkpoints);
  sub->add_option("--library", options->library, "Library to preload: a path, or a name (openmpi4, mpich4, posix)")->type_name("NAME|PATH");
  sub->footer(
      "Example:\n"
      "  holdfast run --protect rs:4+2 --targets /mnt/a,/mnt/b,/mnt/c,/mnt/d,/mnt/e,/mnt/f mpirun -n 4 ./app\n"
      "Exit status: the program's; 2 the settings were refused and nothing was started; 120 replicas differ; 121 all replicas of a rank are "
      "lost, or with checkpoints: ranks were killed, and the launcher ended with 0; 122 a restart was refused; 123 the program ended well, but a "
      "checkpoint is not protected, or files are still on nodes' disks only.");
  sub->callback([options, &code, &program] {
    options->command = program;
    code = run(*options);
  });
}

}  // namespace holdfast::cli
