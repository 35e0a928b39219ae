// Where a job's files lie: asked of this machine's file systems, and of the user.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "advice/site.hpp"
#include "base/status.hpp"
#include "profile/log.hpp"

namespace holdfast::cli {

// The name of a file system by statfs(2)'s number; empty where it is not known.
std::string name_of_file_system(uint64_t magic);

// What only the user may know: the log may come from another machine.
struct SiteOptions {
  uint32_t devices = 0, stripes = 0, most_stripes = 0;
  std::string stripe_size, file_system;
  void add(CLI::App& app);
};

// A known place (from a log that brings them) wins over what this machine says, an option over both.
Result<advice::Site> look_at_site(const profile::Log& log, const SiteOptions& options, const advice::Site& known);

}  // namespace holdfast::cli
