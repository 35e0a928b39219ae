// Logs of Darshan, read by its own Python package.
#pragma once
#include <string>

#include "advice/site.hpp"
#include "base/status.hpp"
#include "profile/log.hpp"

namespace holdfast::cli {

bool is_darshan_log(const std::string& path);

struct ForeignLog {
  profile::Log log;
  advice::Site site;  // what the log knows of the file systems
};
// Where Python or the package `darshan` is missing: one sentence that says how to get it.
Result<ForeignLog> read_darshan_log(const std::string& path);

}  // namespace holdfast::cli
