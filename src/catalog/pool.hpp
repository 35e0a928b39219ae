// Pools: directories of nodes that stand each for itself. A file chooses its members among them, and its manifest alone names them. So nodes come and
// go between jobs, jobs share some of them, and no marker has to be told of that.
#pragma once
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/catalog.hpp"
#include "catalog/located.hpp"
#include "catalog/probe.hpp"

namespace holdfast::catalog {

struct PoolLook {
  size_t usable_nodes = 0;
  std::vector<std::string> remarks;  // sentences: which directories are left out and why, and what a rack's loss would take
};
// Makes the directories of `settings.local` that are there, empty and without a marker directories of the pool. For who begins a job or imports a
// file: within a job a directory that lost its marker is never taken. An error: where nodes share a directory; where it is another node's, a
// set's, or holds something else; where the scheme needs more nodes than there are.
Result<PoolLook> open_pool(const Settings& settings);

// Of the nodes of `settings.local` with their markers as many as `want`, at least `least`, for this file: another choice for each file, spread
// over the domains. Where fewer answer, up to as many members as the scheme bears are lost ones, each with an identity that nobody has. Directories
// for objects with these permission bits.
Result<TargetSet> choose_from_pool(const Settings& settings, const std::string& file_id, int want, int least, uint32_t mode);

// Those that were found with a pool's marker, for who lists what they hold.
TargetSet pool_of(const std::vector<Probe>& probes);
// The same of directories by name; Kind::not_found where none of them is a pool's.
Result<TargetSet> look_at_pool(const std::vector<std::string>& directories, uint64_t deadline_ms);

// A directory of a pool, or an empty one that is made one, that is to take the place of the file's member `index`. The file's manifest alone
// tells of it, once the file is there. It must be no other member's, nor of another member's node.
Result<Member> prepare_pool_member(const Located& file, int index, const std::string& new_path, const Settings& settings);
// Those of `directories` that answer, are empty and have no marker are made directories of the pool, as when a job begins. Their addresses.
std::vector<std::string> take_anew(const std::vector<std::string>& directories, const std::string& pool_id, uint64_t deadline_ms);
// Of `candidates`, directories of pools, one for each of the file's members that are lost, as far as there are some. None is of a node that keeps a
// part of the file.
Result<std::vector<std::pair<int, std::string>>> choose_live(const Located& file, const std::vector<std::string>& candidates,
                                                             const Settings& settings);
// There are `found` for them.
Status too_few_live(const Located& file, size_t found, const Settings& settings);
// Of `candidates` and the file's members those that a file can have as its own: directories of pools that answer, of nodes that `settings.domains` names.
Result<std::vector<std::string>> live_members(const Located& file, std::vector<std::string> candidates, const Settings& settings);
size_t count_nodes(const std::vector<std::string>& directories);
// Whether these directories are of as many nodes as the scheme of `settings` needs; the sentence names the largest scheme that fits.
Status check_enough_nodes(const Settings& settings, const std::vector<std::string>& directories, const std::string& reasons = "");

}  // namespace holdfast::catalog
