// Commands of the user's that are run to begin or mend something, and must not hold up the job.
#pragma once
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace holdfast::cli {

// Each by a shell, some side by side, in the terminal's foreground: one may ask for a password. Those that have not ended within `patience` are ended
// with all that they have started. Returns which these are.
std::vector<size_t> run_commands(const std::vector<std::string>& commands, std::chrono::milliseconds patience);

}  // namespace holdfast::cli
