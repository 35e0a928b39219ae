#include "cli/redundant/job_state.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/host_name.hpp"
#include "base/say.hpp"
#include "catalog/user_files.hpp"
#include "cli/command.hpp"
#include "cli/redundant/teams.hpp"
#include "file/coordinated/protocol.hpp"

namespace holdfast::cli {

namespace {

constexpr size_t most_kept = 20;
constexpr uint64_t most_bytes = 16 << 20;

struct Left {
  std::string path;
  int64_t changed_ns;
};

// The newest first.
std::vector<Left> all_left(const std::string& directory) {
  std::vector<Left> all;
  const auto names = catalog::list_directory(directory);
  if (!names) return all;
  for (const std::string& name : *names) {
    if (!name.ends_with(".json")) continue;
    const auto state = catalog::look(directory + "/" + name, false);
    if (state && state->regular()) all.push_back({directory + "/" + name, state->change_ns});
  }
  std::sort(all.begin(), all.end(), [](const Left& a, const Left& b) { return a.changed_ns > b.changed_ns; });
  return all;
}

// What the names of this node's jobs end with. Nodes may share the directory, and a process of another node cannot be asked for here.
std::string end_of_log_names() { return fmt::format("@{}.log", host_name()); }
std::string end_of_state_names() { return fmt::format("@{}.json", host_name()); }

// Logs of jobs of this node that could not remove them.
void remove_orphans(const std::string& directory) {
  std::error_code ignored;
  const auto names = catalog::list_directory(directory);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!name.ends_with(end_of_log_names())) continue;
    const int process = std::atoi(name.c_str());
    if (process > 0 && ::kill(process, 0) != 0) std::filesystem::remove_all(directory + "/" + name, ignored);
  }
}

std::string after_its_number(const nlohmann::json& team) {
  std::string text;
  if (team.contains("follows")) {
    text = ", started again";
    const double behind_s = double(team.value("behind_ms", 0)) / 1000;
    if (team.value("caught_up", false)) text += ", caught up";
    else if (!team.value("lost", false)) text += behind_s > 0 ? fmt::format(", {:.1f} s behind", behind_s) : ", not caught up yet";
  }
  if (team.value("let_go", false)) return text + ", not needed any more";
  return text + (team.value("lost", false) ? ", lost" : "");
}

void print_notes(const nlohmann::json& job) {
  if (!job.contains("notes")) return;
  for (const auto& note : job["notes"]) show("{}\n", note.is_string() ? note.get<std::string>() : "");
}

// By the lines that replicas have given of each file: PATH, and its protocols.
std::vector<std::string> files_with_separate_writes(const nlohmann::json& job) {
  std::vector<std::string> files;
  const std::string end = fmt::format(", write {}", file::name_of(file::WriteProtocol::distributed_separate));
  for (const auto& note : job.value("notes", nlohmann::json::array())) {
    const std::string line = note.is_string() ? note.get<std::string>() : "";
    const size_t path = line.rfind(": read ");
    if (line.ends_with(end) && path != std::string::npos) files.push_back(line.substr(0, path));
  }
  return files;
}

// Of one that was not said to be over. What lives is known on its own node alone.
std::string runs_or_not(const nlohmann::json& job) {
  const std::string host = job.value("host", host_name());
  if (host != host_name()) return fmt::format("runs, or was ended: ask on {}, where it was started", host);
  return ::kill(job.value("process", 0), 0) == 0 ? "runs" : "was ended";
}

void print(const nlohmann::json& job) {
  const int teams = job.value("replicas", int(job["teams"].size())), again = job.value("relaunched", 0);
  const std::string end = job.value("over", false) ? fmt::format("ended with {}", job.value("exit_status", 0)) : runs_or_not(job);
  show("job {}: {}\n", job.value("process", 0), job.value("command", ""));
  show("{}; epoch {}; {} of {} teams lost{}\n", end, job.value("epoch", 0), job.value("lost", 0), teams,
       again > 0 ? fmt::format(", {} relaunched", again) : "");
  if (job.contains("differences")) show("a rehearsal; calls at which the replicas have differed: {}\n", job.value("differences", uint64_t(0)));
  for (const auto& team : job["teams"]) {
    show("team {}{}\n", team.value("team", 0), after_its_number(team));
    for (const auto& rank : team["ranks"])
      show("  rank {}  process {} on {}{}\n", rank.value("rank", 0), rank.value("process", 0), rank.value("host", ""),
           rank.value("up", false) ? "" : ", gone");
  }
  print_notes(job);
}

}  // namespace

JobState::JobState(std::string command) : command_(std::move(command)), process_(::getpid()) {
  const std::string directory = jobs_directory();
  for (size_t slash = 1; (slash = directory.find('/', slash)) != std::string::npos; ++slash)
    (void)catalog::make_directory(directory.substr(0, slash));
  (void)catalog::make_directory(directory);
  const std::vector<Left> left = all_left(directory);
  for (size_t i = most_kept; i < left.size(); ++i) (void)catalog::unlink_file(left[i].path);
  remove_orphans(directory);
  path_ = fmt::format("{}/{}{}", directory, process_, end_of_state_names());
}

JobState::~JobState() {
  std::error_code ignored;
  if (!log_.empty()) std::filesystem::remove_all(log_, ignored);
}

std::string JobState::make_log() {
  std::string log = fmt::format("{}/{}{}", jobs_directory(), process_, end_of_log_names());
  std::error_code ignored;
  std::filesystem::remove_all(log, ignored);  // of a job that had the same number
  if (catalog::make_directory(log).ok()) log_ = log;
  return log_;
}

void JobState::write(std::string_view json) {
  auto job = nlohmann::json::parse(json, nullptr, false);
  if (job.is_discarded()) return;
  separate_files_ = files_with_separate_writes(job);
  job["command"] = command_;
  job["process"] = process_;
  job["host"] = host_name();
  const std::string text = job.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  (void)catalog::replace_file(path_, path_ + ".new", text, 0600, false);
}

int show_job(bool json) {
  const std::vector<Left> left = all_left(jobs_directory());
  if (left.empty()) return fail(Status(Kind::not_found, "no redundant job of yours is known: start one with holdfast run --replicas 2 …"));
  const auto text = catalog::read_small(left[0].path, most_bytes);
  const auto job = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
  if (!job.is_object() || !job.contains("teams")) return fail(Status(Kind::corrupt, left[0].path + " makes no sense"));
  if (json) print_json(job);
  else print(job);
  return job.value("lost", 0) == 0 ? exit_ok : exit_degraded;
}

}  // namespace holdfast::cli
