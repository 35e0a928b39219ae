// A job's log on disk: what `run` leaves, and what `report` and others read.
#pragma once
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/raw_syscalls.hpp"
#include "base/status.hpp"
#include "profile/log.hpp"

namespace holdfast::cli {

// A log, or the directory of pieces of a job whose `run` was killed with it.
Result<profile::Log> read_job_log(const std::string& path);

Status write_text(const std::string& path, const std::string& text);

// One profiled job of `run`.
class JobLog {
 public:
  // `file`: --log; empty: named after the job at its end. Makes the directory that the job's processes write to. `busy` where another job that runs
  // writes this log.
  static Result<JobLog> begin(const std::string& file, const Settings& settings, const std::vector<std::string>& command);

  const std::string& pieces() const { return pieces_; }
  // Joins what the processes have left into the log. `exit_code` is the launcher's.
  Result<std::string> finish(int exit_code);  // the log's path
  void discard();                             // nothing was started
  bool was_named() const { return !file_.empty(); }

 private:
  Status take_pieces();
  std::string log_name(const std::string& program) const;

  std::string file_, directory_, pieces_, stamp_;
  raw::Fd held_;  // the job's facts, locked while it runs
  profile::Job job_;
};

}  // namespace holdfast::cli
