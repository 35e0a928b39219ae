// The settings as a job gets them: by its environment.
#pragma once
#include <string>
#include <vector>

#include "base/config.hpp"

namespace holdfast::cli {

// Makes the process's variables say `settings` and nothing else, and answers the names of those that are set. A variable of the user's that an option
// has set back to its default goes: it would win in the job.
std::vector<std::string> put_into_environment(const Settings& settings);

}  // namespace holdfast::cli
