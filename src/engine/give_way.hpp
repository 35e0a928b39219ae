// A protected file that becomes a plain one: its last step.
#pragma once
#include <cstdint>
#include <string>

#include "base/config.hpp"
#include "base/status.hpp"

namespace holdfast::engine {

// The plain file `copy`, in the same directory, has the bytes that the protected file at `path` had at `epoch`: it takes its place, and what was on
// the targets goes. Kind::busy, and nothing is changed, where a program has the file open for writing or has committed since.
Status give_way_to_plain(const std::string& path, const std::string& copy, uint64_t epoch, const Settings& settings);

}  // namespace holdfast::engine
