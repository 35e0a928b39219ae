// What keeps all files of a checkpoint from being protected is one thing to say, and not one for each file and node.
#pragma once
#include <cstdint>
#include <string>

#include "base/config.hpp"
#include "checkpoint/run.hpp"

namespace holdfast::checkpoint {

inline constexpr const char* said_directory = "said";  // beside the states: what has been said of this attempt, by step and cause

// Whether nobody of the attempt has said that of the step before. It is remembered by the first node that answers; where none does, each speaks for itself.
bool is_first_to_say(uint64_t step, const std::string& cause, const std::string& own, const Run& run, const Settings& settings);

}  // namespace holdfast::checkpoint
