// A protected file that becomes a plain one, or another protected one: its last step.
#pragma once
#include <cstdint>
#include <string>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/located.hpp"

namespace holdfast::engine {

// The plain file `copy`, in the same directory, has the bytes that the protected file at `path` had at `epoch`. It takes its place, and what was on
// the targets goes. Kind::busy, and nothing is changed, where a program has the file open for writing or has committed since.
Status give_way_to_plain(const std::string& path, const std::string& copy, uint64_t epoch, const Settings& settings);
// The same, where the protected file `by` has the bytes. It follows.
Status give_way_to_another(const std::string& path, catalog::Located& by, uint64_t epoch, const Settings& settings);
// Whether that could be now.
Status could_give_way(const std::string& path, uint64_t epoch, const Settings& settings);

}  // namespace holdfast::engine
