// Which jobs with node agents run: each holds a lock on a note beside those of the agents. Its files, by their manifests, are no other job's.
#pragma once
#include <set>
#include <string>

#include "base/raw_syscalls.hpp"

namespace holdfast::cli {

// As long as `holdfast run` lives; the kernel lets go of it with the process, whatever ends it. One process has no more than one.
class LiveJob {
 public:
  LiveJob() = default;
  ~LiveJob();
  LiveJob(const LiveJob&) = delete;
  // Draws the job's name and puts it into the environment (base/config.hpp). Where no note can be made others take it for one that has ended.
  void begin();

 private:
  std::string path_;
  raw::Fd note_;
};

struct OtherJobs {
  std::set<std::string> alive;
  std::set<std::string> unknown;  // where the file system of the notes has no locks
};
// But this process's own.
OtherJobs other_jobs();

}  // namespace holdfast::cli
