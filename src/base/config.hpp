// Settings: what the user asked for, from all sources, in the order hints of the open > command line > environment >
// holdfast.toml > defaults. The only room that reads the environment. `holdfast run` turns its command line into
// environment for the processes it starts, so inside a job there are hints, environment and file.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings/buffers.hpp"
#include "base/settings/checkpoint.hpp"
#include "base/settings/engine.hpp"
#include "base/settings/layout.hpp"
#include "base/settings/output.hpp"
#include "base/settings/places.hpp"
#include "base/settings/policy.hpp"
#include "base/settings/profile.hpp"
#include "base/settings/replicas.hpp"
#include "base/settings/shared_pointer.hpp"
#include "base/settings/waiting.hpp"
#include "base/status.hpp"

namespace holdfast {

// All settings. A room asks for the part that it reads (`const WaitingSettings&`), and gets it from the whole. The fields of each part are in its
// header, the records of its keys in the file beside it (settings/record.hpp): parser, hint, environment name, what is allowed.
// A hint `holdfast_x` is the environment's HOLDFAST_X and the file's x; the field's own hints (striping_unit, striping_factor, start_iodevice,
// cb_nodes, replication_factor) keep their names, HOLDFAST_STRIPING_UNIT etc.
struct Settings : LayoutSettings,
                  PlaceSettings,
                  PolicySettings,
                  EngineSettings,
                  WaitingSettings,
                  BufferSettings,
                  SharedPointerSettings,
                  ReplicaSettings,
                  ProfileSettings,
                  OutputSettings,
                  CheckpointSettings {
  // Environment over configuration file (HOLDFAST_CONFIG, else ./holdfast.toml where it exists; HOLDFAST_CONFIG set to
  // nothing: no file) over defaults. A value that makes no sense is one sentence naming the key and what is allowed.
  static Result<Settings> load();
  // The same with `config_path` in the place of HOLDFAST_CONFIG (`holdfast run --config`); empty: as load().
  static Result<Settings> load_with(const std::string& config_path);
  // One hint of MPI_Info. Unknown keys are ignored (the standard's rule) and return ok. The field's hints about the layout never fail
  // (MPI-4.0, 14.2.8): programs set them for another machine. Those that ask for protection, and holdfast_*, fail with bad values.
  Status apply_hint(std::string_view key, std::string_view value);
  // One option of the command line by its key's plain name ("protect", "striping_unit", ...); errors call it --striping-unit.
  Status apply_option(std::string_view name, std::string_view value);
  // Contradictions (replication_factor 3 with protect rs:4+2 from the same open, fewer targets than the scheme's width ...).
  Status check() const;
  // The hints that are in force, by hint name: what MPI_File_get_info returns.
  std::map<std::string, std::string> hints() const;
  // HOLDFAST_* variables that make load() return the same settings elsewhere.
  std::map<std::string, std::string> environment() const;
};

Result<uint64_t> parse_size(std::string_view text);         // "1048576", "64k", "1MiB", "4 MB" (binary units all)
Result<uint64_t> parse_duration_ms(std::string_view text);  // "10" (seconds), "500ms", "2min"

// What there is to know of a setting by its key, for manual pages and completion.
struct SettingFacts {
  std::string variable;             // HOLDFAST_X
  std::string hint;                 // its name in an MPI_Info; empty: it is none
  std::string allowed;              // what its value may be, as a refusal says it; empty: any text
  std::vector<std::string> values;  // worth proposing: all that there are where the values are words
};
std::optional<SettingFacts> facts_of_setting(std::string_view key);

// fnmatch(3) without flags: '*' and '?' match '/' too, so "/scratch/run/*" covers what lies deeper. A glob without '/' is
// held against the path's last component, one with '/' against the whole absolute path.
bool glob_matches(const std::string& glob, const std::string& absolute_path);

// Variables that are not settings, for the rooms that must not read the environment themselves; empty where unset.
std::string environment_variable(const char* name);
void forget_environment_variable(const char* name);
// Where this user's processes find the node agents: HOLDFAST_AGENTS, else $XDG_STATE_HOME/holdfast/agents, else below the home directory.
std::string agents_directory();
// Where this user's jobs leave their state, beside that.
std::string jobs_directory();
// The job that this process belongs to, as `holdfast run` has named it (16 hex digits); empty: none whose nodes keep files.
inline constexpr const char* job_variable = "HOLDFAST_JOB";
std::string job_of_this_process();
// Variables HOLDFAST_* that are set and mean nothing, each with the known one that is spelled most like it (empty: none is).
struct StrangeVariable {
  std::string name, meant;
};
std::vector<StrangeVariable> strange_variables();
// The process's rank in its job as its launcher (Open MPI, MPICH's Hydra, PMIx, Slurm) says it; empty for what is no rank.
std::string rank_of_environment();

}  // namespace holdfast
