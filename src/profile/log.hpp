// The log of a job: what all its processes have counted, as one file. docs/format-log.md has its bytes.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "profile/counters.hpp"
#include "profile/mpi_calls.hpp"

namespace holdfast::profile {

inline constexpr uint32_t log_format = 1;
inline constexpr char log_suffix[] = ".hflog";

struct Job {
  std::vector<std::string> command;  // as `holdfast run` got it
  std::string program;               // the path of the executable that did most
  std::string scheme;                // the job's policy; empty: none
  std::string holdfast;              // the version that wrote the log
  uint64_t start_ns = 0;             // since 1970
  uint64_t duration_ns = 0;
  uint32_t ranks = 0;  // of MPI; 1 for a serial program
  std::vector<std::string> nodes;
  std::string id;               // of the batch system; empty: none, or not known
  std::string mpi;              // "MPICH 4.0.2"; empty: none, or not known
  int exit_code = -1;           // -1: not known (the report was made from what a killed job left)
  bool complete = true;         // all processes ended in order
  uint64_t damaged_pieces = 0;  // that could not be read
};

// MPI's calls that are not about files, by what they do.
struct MpiUse {
  uint64_t calls = 0, ns = 0;
  bool operator==(const MpiUse&) const = default;
};
using MpiUses = std::array<MpiUse, mpi_calls_kinds>;

struct Process {
  int64_t rank = 0;
  uint32_t pid = 0;
  std::string node, program;
  uint64_t start_ns = 0, duration_ns = 0;  // since the job's start
  bool ended = false;
  std::optional<MpiUses> mpi_calls;  // none: nobody asked
};

struct CommonValue {
  int64_t value = 0;  // bytes; a stride may lead back
  uint64_t count = 0;
  bool operator==(const CommonValue&) const = default;
};

struct RankCounters {
  int64_t rank = 0;
  Counters counters;
};

// One file through one interface.
struct FileUse {
  std::string path;
  Interface interface = Interface::mpiio;
  std::string scheme;   // empty: not protected
  std::string pointer;  // the algorithms of its shared pointer, "window, individual"; empty: not used
  uint64_t alignment = 0;
  Counters total;                                                                 // over all ranks
  std::vector<RankCounters> ranks;                                                // ascending
  std::vector<CommonValue> read_sizes, write_sizes, read_strides, write_strides;  // most frequent first

  // Rank with the most and the least time in calls on this file; null where there is none.
  const RankCounters* slowest() const;
  const RankCounters* fastest() const;
};

// Bytes in each step of the job's time, for each rank.
struct TimeLine {
  uint64_t step_ns = 0;
  struct Row {
    int64_t rank = 0;
    std::vector<uint64_t> read, written;
  };
  std::vector<Row> rows;  // all of the same length
};

// With --trace: single operations, as many as each process could keep (the last ones).
struct Operation {
  int64_t rank = 0;
  uint32_t file = 0;  // index in Log::files
  Counter kind = Counter::others;
  uint64_t begin_ns = 0, duration_ns = 0, offset = 0, bytes = 0;  // offset UINT64_MAX: not known
};

struct Log {
  Job job;
  std::vector<Process> processes;
  std::vector<FileUse> files;  // most bytes first
  TimeLine time_line;
  std::vector<Operation> operations;
  uint64_t operations_lost = 0;
};

std::string encode(const Log& log);
// A damaged, truncated or newer log: one sentence.
Result<Log> decode(ByteView bytes);

// The content of the container, and back: JSON text. decode() checks the container and calls it.
std::string to_json_text(const Log& log);
Result<Log> from_json_text(std::string_view text);

}  // namespace holdfast::profile
