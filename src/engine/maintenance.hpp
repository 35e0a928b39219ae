// Status, verify and repair of one protected file, by one process. They use the same row reader and the same
// reconstruction as a program's reads.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/located.hpp"

namespace holdfast::engine {

// Called now and then with work done and all work (in bytes); false asks to stop (repair is resumable).
using Progress = std::function<bool(uint64_t done_bytes, uint64_t total_bytes)>;

// Exit codes 0 to 3 of `holdfast status`. Unknown: more is out of reach than the scheme bears, but not without targets of nodes whose agents do
// not answer.
enum class Health : uint8_t { healthy, degraded, lost, unknown };
const char* health_name(Health health);

struct MemberReport {
  int member = 0;
  std::string path;
  std::string
      state;  // "ok", "lost", "unreached" (its node's agent does not answer), "stale", "damaged", "unfinished" (current, but hardly anything leads to it: a repair was cut short)
  std::string why;     // empty when ok
  uint64_t units = 0;  // verify: units looked at; status: 0
  uint64_t damaged_units = 0;
};

struct FileStatus {
  layout::Manifest manifest;
  Health health = Health::healthy;
  std::vector<MemberReport> members;
  int tolerates_more = 0;  // further losses that it can bear now
};
// Looks at manifests, markers and object sizes; does not read the data.
Result<FileStatus> file_status(const catalog::Located& located, const Settings& settings);

struct Finding {
  uint64_t row = 0;
  int unit = -1;  // -1: the row as a whole, or a member's manifest or sums
  int member = -1;
  std::string what;  // "corrupt", "missing", "truncated", "stale", "unreadable", "foreign", "manifest", "sums", "code", "lost", "unreached"
  std::string detail;
};
struct VerifyReport {
  FileStatus status;
  uint64_t rows = 0, units = 0, bytes = 0;
  std::vector<Finding> findings;  // in row order; at most 10000, then only counted
  uint64_t finding_count = 0;
  uint64_t lost_rows = 0;  // rows that cannot be rebuilt from what is reachable
  uint64_t gone_rows = 0;  // of these: also where every target came back whose node's agent does not answer
  bool stopped = false;
};
// Reads every unit, checks every checksum and every row's code.
Result<VerifyReport> verify(const catalog::Located& located, const Settings& settings, const Progress& progress);

struct RepairReport {
  uint64_t units_rebuilt = 0, bytes_rebuilt = 0, records_rewritten = 0, manifests_rewritten = 0;
  uint64_t journals_replayed = 0;
  uint64_t sessions_folded = 0;  // writers that were killed: what they left is made the file's own, or zeros
  std::vector<uint64_t> per_member_units;
  std::vector<uint64_t> lost_rows;  // nothing to be done from what is reachable
  std::vector<std::string> left;    // one sentence for each target that could not be brought up to date
  bool stopped = false;
  FileStatus status;  // afterwards
};
// Kind::lost or stale where fewer members are current than it takes to rebuild the others.
Status enough_left(const catalog::Located& located, const Settings& settings);
// Rebuilds what is lost, stale or damaged on the members that `located` has, moves what its replacements are to hold to them, and marks
// current what is whole. A member that cannot be made whole keeps its state, and its place. Beside a running job only synced rows are
// touched. `located` follows. Kind::lost, and nothing changed, where more members are out of reach than the scheme bears.
Result<RepairReport> repair(catalog::Located& located, const Settings& settings, const Progress& progress);

}  // namespace holdfast::engine
