// Which run, and which attempt of it, a process belongs to: what `holdfast run` tells the job in one variable.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "layout/attempt.hpp"

namespace holdfast::checkpoint {

inline constexpr const char* run_variable = "HOLDFAST_CHECKPOINT_RUN";
// A host, and the name that the user has given to it as a node.
inline constexpr const char* node_variable = "HOLDFAST_NODE";
inline constexpr const char* team_variable = "HOLDFAST_CHECKPOINT_TEAM";  // of a redundant job: which team of it a process is in
// What `run` says to a protector, behind its orders, when the attempt is over.
inline constexpr char attempt_is_over = '.';

struct Run {
  std::string id;           // 16 hex digits
  layout::Attempt attempt;  // its number grows with every start of the job in this run
  // The checkpoint that this attempt begins with: all of it is visible, and nothing else that was there before.
  struct From {
    layout::Attempt attempt;
    uint64_t step;
    bool drained = false;  // its plain files are what is left of it
    // The least and the highest of its files' (layout::Version); 0: not known. They say what belongs to it, and which one it is is said without them.
    uint32_t turn = 0, times = 0, last_turn = 0, last_times = 0;
    struct Last {
      uint64_t written = 0;
      uint32_t number = 0;
      bool operator==(const Last&) const = default;
    };
    std::map<std::string, Last> last = {};  // the highest of each node that has written any of it, by its digits; empty: not known
    bool operator==(const From& other) const { return attempt == other.attempt && step == other.step && drained == other.drained; }
  };
  std::optional<From> from;
  bool simulated = false;          // the nodes are directories of this machine, which the ranks take in turn
  std::vector<std::string> nodes;  // addresses of those that live, in the order in which ranks are on them
  int teams = 1;                   // of a redundant job, which is there so many times
  bool operator==(const Run&) const = default;
};

// The name of a run that begins now. Names sort by the time of their beginning, to the microsecond: `--resume` takes the last. It is later than that of
// `latest`, whatever the clock says.
std::string new_run(std::chrono::system_clock::time_point now, const std::string& latest = "");
// Whether a text may be such a name.
bool is_run(const std::string& text);

// Of an attempt that begins now. Ids sort by that time, to the millisecond, and end with as many bits that are drawn.
inline constexpr int drawn_bits_of_attempt = 22;
uint64_t new_attempt_id(std::chrono::system_clock::time_point now);

std::string encode(const Run& run);
// Kind::invalid for what encode() has not written.
Result<Run> decode_run(const std::string& text);

// The node's directory of a process with that rank, on a machine of that name: NODE:/DIR. Empty where it is on none of them. Where nodes are simulated
// each team has a part of them, as many as there are enough of.
std::string node_of_rank(const Run& run, uint32_t rank, const std::string& host, int team = 0);
// Of this process; 0 where there is one only.
int own_team(const Run& run);
// What HOLDFAST_CHECKPOINT_TEAM says. `resumes`: of a team that was started again, the checkpoint of this attempt that it goes on from.
std::string encode_team(int team, const std::optional<Run::From>& resumes);
std::optional<Run::From> resumed_by_own_team();

// What node_variable says of this host; empty: nothing.
std::string given_node_name();
// The same of this process. The node goes by the name that the user has given to it, Slurm's name for it, the host's short name, or the long one.
// The rank is the launcher's.
std::string own_node(const Run& run, uint32_t rank);
uint32_t own_rank();
// Whether the launcher says that another rank is the first on this host.
bool is_another_first_here();

// How many ranks the job has, as its launcher says it to this process; 1 where nobody does.
uint32_t ranks_of_environment();
// Whether that is so: a launcher that says which rank this is, and not of how many, has not said that it is alone.
bool are_ranks_said();

}  // namespace holdfast::checkpoint
