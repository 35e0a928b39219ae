// What the profile and the job's log read.
#pragma once
#include <string>
#include <vector>

namespace holdfast {

struct ProfileSettings {
  bool profile = false;                      // count the files' use into a log of the job
  bool profile_mpi = false;                  // count MPI's calls that are not about files as well
  bool trace = false;                        // keep single operations as well
  std::vector<std::string> profile_exclude;  // globs of files that are not counted
  std::string log_directory;
};

}  // namespace holdfast
