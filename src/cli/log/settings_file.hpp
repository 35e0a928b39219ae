// Changing holdfast.toml for the user: what is there stays, comments and order too.
#pragma once
#include <string>
#include <vector>

#include "advice/advice.hpp"
#include "base/status.hpp"

namespace holdfast::cli {

struct Written {
  std::vector<std::string> lines;     // as they stand in the file now
  std::vector<std::string> left_out;  // sentences: what was not written, and why
};

// Sets the keys in the file, which is made where it is not there. Lists keep what they have. A setting that would change which files the
// configuration protects is left out.
Result<Written> write_settings(const std::string& path, const std::vector<advice::Setting>& settings);

}  // namespace holdfast::cli
