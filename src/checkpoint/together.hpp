// A file of a checkpoint that several ranks write together. It grows on the nodes' targets, where nobody finds it by a path, and becomes a version
// when all of them have closed it.
#pragma once
#include <cstdint>
#include <string>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/located.hpp"
#include "checkpoint/run.hpp"
#include "layout/manifest.hpp"

namespace holdfast::checkpoint {

// By one rank, on node `own` (an address of the pool). All others open it by its manifest (catalog::locate_growing).
Result<catalog::Located> grow(const layout::Version& version, const std::string& own, uint32_t mode, const Settings& settings);
// It begins with the content of the open file `from`, which has the name `path` in messages; before anybody else opens it.
Status begin_with(const catalog::Located& growing, int from, const std::string& path, const Settings& settings);
// Another one after each open to write, and the same as long as nobody opens it so.
Result<uint64_t> generation_of(const catalog::Located& growing, const Settings& settings);
// By one rank, when all have closed it. The number of its targets that are lost, of a degraded version.
Result<int> complete(const catalog::Located& growing, const layout::Version& version, const Settings& settings);
// Nothing of it stays.
void give_up(const catalog::Located& growing);
// What the attempts of this run up to that one have left behind when they were killed.
void remove_left(const std::string& run, const layout::Attempt& last, const std::vector<std::string>& nodes, uint64_t deadline_ms);

}  // namespace holdfast::checkpoint
