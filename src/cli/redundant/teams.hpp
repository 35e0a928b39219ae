// holdfast run --replicas R: the command R times side by side, and the hub that joins them.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "cli/job/launcher.hpp"

namespace holdfast::cli {

// Which checkpoint a team that is started again goes on from, and what its processes are told of that. Nothing: none is whole.
struct TeamBeginning {
  uint64_t step = 0;
  std::function<std::string(int team)> told;
};
using FindBeginning = std::function<std::optional<TeamBeginning>()>;

// In the words of --restart-command, for the step of that checkpoint.
inline constexpr const char* step_mark = "@step@";

struct Teams {
  int count = 2;
  std::vector<std::string> command;  // of each team, but for what is added here
  std::vector<std::string> shown;    // as the user gave it
  const Mpi& mpi;
  std::string compare = "files";          // what the replicas compare: files, messages (and files)
  int relaunches = 0;                     // of lost teams
  uint64_t log_bytes = 0;                 // of each rank, at most, for them
  bool rehearses = false;                 // replicas that differ are told of and go on
  std::string spare_hosts = {};           // a list: for teams that are started again
  std::vector<std::string> restart = {};  // the command of these, where it is another one
  FindBeginning beginning = {};           // of these, where the job has checkpoints
};

// Why these settings cannot be had together with replicas, where they cannot.
Status check_teams(const Teams& teams, const Settings& settings);
// Until the job is over: its exit status.
int run_teams(const Teams& teams, const Settings& settings);

// Where this user's jobs leave their state for `holdfast status --job`, and what the newest has left there (JSON).
int show_job(bool json);

}  // namespace holdfast::cli
