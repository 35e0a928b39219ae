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

// One key per hint. A hint `holdfast_x` is the environment's HOLDFAST_X and the file's x; the field's own hints
// (striping_unit, striping_factor, start_iodevice, replication_factor) keep their names, HOLDFAST_STRIPING_UNIT etc.
struct Settings {
  std::optional<std::string> protect;         // holdfast_protect: mirror:R, rs:K+M or none
  std::vector<std::string> targets;           // holdfast_targets: directories, comma-separated
  std::vector<std::string> path_globs;        // HOLDFAST_PATH (not a hint), separated by ':'; empty: every file created through MPI-IO
  std::optional<std::string> placement;       // holdfast_placement
  std::optional<uint64_t> striping_unit;      // bytes; 1048576, 1MiB, 64k in environment and file
  std::optional<int> striping_factor;
  std::optional<int> start_iodevice;
  bool allow_shared_target = false;           // holdfast_allow_shared_target
  bool fast_close = false;                    // holdfast_close=fast|durable
  uint64_t deadline_ms = 10000;               // holdfast_deadline: seconds, or with a unit: 500ms, 10s, 2min
  uint64_t accept_epoch = 0;                  // holdfast_accept_epoch: serve this old epoch where nothing newer can be reached
  uint64_t buffer_bytes = 48ull << 20;        // holdfast_buffer_bytes: pending partial rows per process and file set
  std::string log_directory;                  // holdfast_log_directory

  // Environment over configuration file (HOLDFAST_CONFIG, else ./holdfast.toml where it exists) over defaults.
  // A value that makes no sense is one sentence naming the key and what is allowed.
  static Result<Settings> load();
  // One hint of MPI_Info. Unknown keys are ignored (the standard's rule) and return ok; known keys with bad values fail.
  Status apply_hint(std::string_view key, std::string_view value);
  // Contradictions (replication_factor 3 with protect rs:4+2 from the same open, fewer targets than the scheme's width ...).
  Status check() const;
  // The hints that are in force, by hint name: what MPI_File_get_info returns.
  std::map<std::string, std::string> hints() const;
  // HOLDFAST_* variables that make load() return the same settings elsewhere.
  std::map<std::string, std::string> environment() const;
  bool protects() const { return protect && *protect != "none"; }
};

Result<uint64_t> parse_size(std::string_view text);      // "1048576", "64k", "1MiB", "4 MB" (binary units all)
Result<uint64_t> parse_duration_ms(std::string_view text);  // "10" (seconds), "500ms", "2min"
bool glob_matches(const std::string& glob, const std::string& absolute_path);

}  // namespace holdfast
