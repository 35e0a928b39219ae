// Versions of checkpoints, for commands about files: by the path at which the program wrote them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/versions.hpp"
#include "engine/maintenance.hpp"

namespace holdfast::cli {

// Of --local, or of all agents that are known.
std::vector<std::string> nodes_of(const Settings& settings);

// The one that was written last. Nothing where a protected file stands at the path, or no node that answers has a version of it.
std::optional<catalog::FoundVersion> version_at(const std::string& path, const Settings& settings);
// What was answered for a path that is no protected file. Where it is a checkpoint's, that is said, with the command that does what was asked for.
enum class Asked : uint8_t { bytes, check };
Status or_of_checkpoint(const std::string& path, const Status& answered, Asked asked, const Settings& settings);
// Of a file of a pack: the health of the pack.
Result<engine::FileStatus> status_of_version(const layout::Manifest& version, const Settings& settings);

// Every unit and every checksum of it is looked at, unless a part is missing.
bool lacks_something(const catalog::FoundVersion& version, const Settings& settings);
// Written again over nodes that answer where it lacks something; true where that was so.
Result<bool> renew_version(const catalog::FoundVersion& version, const std::vector<std::string>& live, const Settings& settings);

}  // namespace holdfast::cli
