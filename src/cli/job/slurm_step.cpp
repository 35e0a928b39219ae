#include "cli/job/slurm_step.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/config.hpp"
#include "base/node_list.hpp"
#include "base/shell_word.hpp"
#include "catalog/user_files.hpp"
#include "cli/job/hosts.hpp"
#include "cli/job/program.hpp"
#include "target/agent_registry.hpp"

namespace holdfast::cli {

namespace {

constexpr const char* own_steps = "holdfast-";  // their names begin so
constexpr const char* last_line = "holdfast: the job step of the agents has ended";

// In a session of its own, so that neither the terminal nor the launcher that this process becomes has to do with it. The shell ends at once.
Status start_apart(const std::string& shell_words) {
  const std::string command = shell_words + " &";
  const char* const words[] = {"sh", "-c", command.c_str(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (int fd = 0; fd < 3; ++fd) posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t child = 0;
  const int error = posix_spawn(&child, "/bin/sh", &files, &attributes, const_cast<char* const*>(words), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return Status::from_errno(error, "/bin/sh");
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {};
}

// Whose srun has started a step. gone: it was on this host and has ended. What cannot be known is another's.
enum class Starter : uint8_t { own, another, gone };
Starter starter_of(const std::string& step, const std::string& variable, const std::string& begins) {
  constexpr const char* field = "SrunHost:Pid=";
  const std::string shown = output_of({"scontrol", "show", "step", step}).value_or("");
  const size_t at = shown.find(field);
  const size_t colon = at == std::string::npos ? at : shown.find(':', at + std::strlen(field));
  if (colon == std::string::npos) return Starter::another;
  const std::string host = shown.substr(at + std::strlen(field), colon - at - std::strlen(field));
  pid_t process = 0;
  (void)std::from_chars(shown.data() + colon + 1, shown.data() + shown.size(), process);
  if (host != short_host_name() || process <= 0) return Starter::another;
  const auto environment = environment_of(process);
  if (environment.empty()) return Starter::gone;
  const auto found = environment.find(variable);
  return found != environment.end() && found->second.starts_with(begins) ? Starter::own : Starter::another;
}

// A shell's word has 128 KiB at most. A short list stays as people write it.
std::string list_of(const std::vector<std::string>& nodes) {
  constexpr size_t short_bytes = 4096;
  const std::string all = fmt::format("{}", fmt::join(nodes, ","));
  return all.size() <= short_bytes ? all : shell_quoted(names_in_few_words(nodes, ','));
}

}  // namespace

bool is_slurm_job() { return !environment_variable("SLURM_JOB_ID").empty() && find_on_path("srun"); }

bool is_slurm_task() {
  constexpr uint32_t first_of_no_step = 0xfffffff0;  // slurm.h: an interactive shell, a batch script, what is pending
  const std::string step = environment_variable("SLURM_STEP_ID");
  uint32_t number = first_of_no_step;
  (void)std::from_chars(step.data(), step.data() + step.size(), number);
  return number < first_of_no_step;
}

std::map<std::string, std::vector<std::string>> program_steps() {
  std::map<std::string, std::vector<std::string>> steps;
  if (!is_slurm_job()) return steps;
  const std::string job = environment_variable("SLURM_JOB_ID");
  std::istringstream lines(output_of({"squeue", "--steps", "--noheader", "--jobs=" + job, "--format=%i %N %j"}).value_or(""));
  std::string step, nodes, name;
  while (lines >> step >> nodes && std::getline(lines >> std::ws, name))
    if (!name.starts_with(own_steps) && std::isdigit(static_cast<unsigned char>(step.back())))  // not "17.batch", "17.extern"
      if (auto names = expand_hosts(nodes)) steps[step] = std::move(*names);
  return steps;
}

std::vector<std::string> end_steps_left(const std::string& variable, const std::string& begins, const std::vector<std::string>& lost,
                                        const std::map<std::string, std::vector<std::string>>& before) {
  constexpr std::chrono::milliseconds patience(5000), between(500);
  const auto give_up = std::chrono::steady_clock::now() + patience;
  for (;;) {
    std::vector<std::string> left;
    for (const auto& [step, nodes] : program_steps()) {
      if (before.contains(step)) continue;
      const Starter starter = starter_of(step, variable, begins);
      if (starter == Starter::another) continue;
      left.push_back(step);
      const bool has_lost = std::find_first_of(nodes.begin(), nodes.end(), lost.begin(), lost.end()) != nodes.end();
      if (starter == Starter::own || has_lost) (void)output_of({"scancel", "--quiet", "--signal=KILL", step});
    }
    if (left.empty() || std::chrono::steady_clock::now() > give_up) return left;
    std::this_thread::sleep_for(between);
  }
}

// --overlap: beside the program's own step, on the same processors. --no-kill and --kill-on-bad-exit=0: a loss ends no other task.
std::string step_on(const std::vector<std::string>& nodes, const std::string& name) {
  return fmt::format(
      "srun --job-name={}{} --overlap --no-kill --kill-on-bad-exit=0 --mpi=none --nodes={} --ntasks={} --ntasks-per-node=1 --nodelist={}", own_steps,
      name, nodes.size(), nodes.size(), list_of(nodes));
}

Result<SlurmStep> SlurmStep::start(const std::vector<std::string>& nodes, const std::vector<std::string>& patterns, const AgentStart& how) {
  const std::string registry = agents_directory();
  HF_TRY(target::make_secret(registry).status());  // the log lies beside it, and the agents need not make it all at once
  const std::string log = fmt::format("{}/step-of-job-{}.log", registry, environment_variable("SLURM_JOB_ID"));
  const auto self = catalog::read_link("/proc/self/exe");
  std::string command =
      fmt::format("HOLDFAST_AGENTS={} {} --input=none {} agents start --foreground{} --linger {}", shell_quoted(registry), step_on(nodes, "agents"),
                  shell_quoted(self ? *self : "holdfast"), how.makes_missing ? " --make" : "", how.linger_s);
  for (const std::string& pattern : patterns) command += " " + shell_quoted(pattern);
  ::unlink(log.c_str());  // what an earlier step of this job has said
  HF_TRY(start_apart(fmt::format("{{ {}; echo '{}'; }} >{} 2>&1", command, last_line, shell_quoted(log))));
  return SlurmStep(log);
}

std::string SlurmStep::said() const {
  constexpr size_t most = 4000;
  std::ifstream in(log_);
  in.seekg(0, std::ios::end);
  in.seekg(std::max<std::streamoff>(0, std::streamoff(in.tellg()) - std::streamoff(most)));
  std::string text(most, '\0');
  in.read(text.data(), std::streamsize(most));
  text.resize(size_t(in.gcount()));
  return text;
}

bool SlurmStep::ended() const { return said().find(last_line) != std::string::npos; }

}  // namespace holdfast::cli
