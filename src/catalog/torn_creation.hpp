// What a power failure can leave of a file that was made and not yet synced: a name that leads nowhere, empty manifests. No file is lost
// with it, so whoever makes the file makes it anew. What holds data, or leads to members that do not answer, never counts as that.
#pragma once
#include <string>

#include "base/status.hpp"
#include "catalog/probe.hpp"
#include "catalog/sidecar.hpp"
#include "target/target.hpp"

namespace holdfast::catalog {

// No manifest but empty ones or zeros, and no data: it names no file.
bool is_dead(const Sidecar& sidecar);

// Whether `directory` of the target (a file's own on a member, or its sidecar) is missing, or holds manifests and locks and not a byte else.
Result<bool> holds_no_data(target::Target& target, const std::string& directory);

// Whether the members say that the file which the path leads to was never synced. All members of its set were looked at and answer, and none has a
// manifest or data in `directory`. `set_id` may be empty where only the path's link says which set it is.
bool all_hold_nothing(const std::vector<Probe>& probes, const std::string& set_id, const std::string& directory);
// The same of a file on a pool whose members all have these uuids; where they are not known it says nothing.
bool all_hold_nothing(const std::vector<Probe>& probes, const std::vector<std::string>& uuids, const std::string& directory);

// Whether nothing was ever synced of the file that has `directory` on these targets. All of them answer, and what they have of it is manifests of a
// file that was made and no byte of data.
bool was_never_synced(const std::vector<std::string>& targets, const std::string& directory, uint64_t deadline_ms);

}  // namespace holdfast::catalog
