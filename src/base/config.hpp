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

#include "base/status.hpp"

namespace holdfast {

// Where a value came from; a higher source wins over a lower one, whatever the order in which they are applied.
enum class Source : uint8_t { defaults, file, environment, command_line, hint };

// One key per hint. A hint `holdfast_x` is the environment's HOLDFAST_X and the file's x; the field's own hints
// (striping_unit, striping_factor, start_iodevice, cb_nodes, replication_factor) keep their names, HOLDFAST_STRIPING_UNIT etc.
struct Settings {
  std::optional<std::string> protect;      // holdfast_protect: mirror:R, rs:K+M or none
  std::vector<std::string> targets;        // holdfast_targets: directories, comma-separated; kept as absolute paths
  std::vector<std::string> local;          // HOLDFAST_LOCAL (not a hint): directories of a pool, NODE:DIR,...; in the place of targets
  std::string domains;                     // HOLDFAST_DOMAINS (not a hint): a file that says which nodes are lost together
  std::vector<std::string> checkpoint;     // HOLDFAST_CHECKPOINT (not a hint), separated by ':': patterns of checkpoints, with {step} and {rank}
  std::vector<std::string> path_globs;     // HOLDFAST_PATH (not a hint), separated by ':'; empty: every file created through MPI-IO
  std::string mounts = "any";              // HOLDFAST_MOUNTS (not a hint): which file systems the globs of plain files speak of: any, shared or local
  std::vector<std::string> shared_mounts;  // HOLDFAST_SHARED_MOUNTS, comma-separated: shared between nodes whatever their kind
  std::vector<std::string> local_mounts;   // HOLDFAST_LOCAL_MOUNTS: each node's own whatever their kind
  std::optional<std::string> placement;    // holdfast_placement
  std::optional<uint64_t> striping_unit;   // bytes; 1048576, 1MiB, 64k in environment and file; 0: the default
  std::optional<int> striping_factor;      // 0 or -1: the default
  std::optional<int> start_iodevice;       // -1: the default
  int cb_nodes = 0;                        // processes that write for the others in a collective call; 0: the default
  bool allow_shared_target = false;        // holdfast_allow_shared_target
  bool fast_close = false;                 // holdfast_close=fast|durable
  uint64_t deadline_ms = 10000;            // holdfast_deadline: seconds, or with a unit: 500ms, 10s, 2min
  int patience = 10;                       // holdfast_patience: deadlines that calls are waited for while more targets are late than may be lost
  std::string locks = "auto";              // HOLDFAST_LOCKS (not a hint, it is one for the process): auto, kernel or names
  uint64_t lock_patience_ms = 10 * 60 * 1000;  // holdfast_lock_patience: how long a file's lock is waited for
  uint64_t accept_epoch = 0;                   // holdfast_accept_epoch: serve this old epoch where nothing newer can be reached
  uint64_t buffer_bytes = 32ull << 20;         // holdfast_buffer_bytes: pending partial rows per process and file set
  std::string log_directory;                   // holdfast_log_directory
  int buffers = 0;                             // HOLDFAST_BUFFER (not a hint): buffers of a POSIX file that a glob names; 0: none
  uint64_t buffer_size = 0;                    // bytes of each of them
  std::string buffer_flush = "full";           // HOLDFAST_BUFFER_FLUSH (not a hint): full, needed, or a time after which what waits is written
  uint64_t buffer_flush_ms = 0;                // that time; 0: none
  std::string gather_output;                   // HOLDFAST_GATHER_OUTPUT (not a hint): the file that the ranks' standard output goes to
  std::string shared_pointer = "automatic";    // holdfast_shared_pointer: automatic, window, process, individual, single or native
  bool merge_later = false;                    // holdfast_merge=close|later: record logs are joined at close, or by `holdfast merge`
  uint64_t max_metadata_records = 65536;       // holdfast_max_metadata_records: kept in memory by each process, the rest on the log
  bool profile = false;                        // HOLDFAST_PROFILE (not a hint): count the files' use into a log of the job
  bool profile_mpi = false;                    // HOLDFAST_PROFILE_MPI (not a hint): count MPI's calls that are not about files as well
  bool trace = false;                          // HOLDFAST_TRACE (not a hint): the profile keeps single operations as well
  std::vector<std::string> profile_exclude;    // HOLDFAST_PROFILE_EXCLUDE (not a hint), separated by ':': globs of files that are not counted
  bool ordered_by_scan = false;                // holdfast_ordered=root|scan: how ranks learn their places in an ordered call

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
  // Hints about the layout that `available` targets (0: not known) cannot follow are followed as far as they can be.
  void fit_layout_hints(int available);
  // Contradictions (replication_factor 3 with protect rs:4+2 from the same open, fewer targets than the scheme's width ...).
  Status check() const;
  // The hints that are in force, by hint name: what MPI_File_get_info returns.
  std::map<std::string, std::string> hints() const;
  // HOLDFAST_* variables that make load() return the same settings elsewhere.
  std::map<std::string, std::string> environment() const;
  bool protects() const { return protect && *protect != "none"; }

  // Where the scheme came from, and what replication_factor and protect of that one source said against each other.
  Source protect_source = Source::defaults;
  bool protect_is_replication_factor = false;
  std::string contradiction;

  // Settings of the layout that a program hinted at, and what was not done as it said: a sentence for each.
  bool factor_is_hinted = false, start_is_hinted = false;
  std::vector<std::string> hint_remarks;
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
// Variables HOLDFAST_* that are set and mean nothing, each with the known one that is spelled most like it (empty: none is).
struct StrangeVariable {
  std::string name, meant;
};
std::vector<StrangeVariable> strange_variables();
// The process's rank in its job as its launcher (Open MPI, MPICH's Hydra, PMIx, Slurm) says it; empty for what is no rank.
std::string rank_of_environment();

}  // namespace holdfast
