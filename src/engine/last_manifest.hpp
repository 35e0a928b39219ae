// The only manifest of a version of a checkpoint, which is the last of what is written of it. It is written when the units are there.
#pragma once
#include "engine/members.hpp"
#include "layout/manifest.hpp"

namespace holdfast::engine {

inline constexpr uint64_t only_generation = 1;  // of all rows of a version

// Members that are lost are stale in it.
void call_lost_stale(const Members& members, layout::Manifest& manifest);
// A degraded version is worth having as long as it bears one more loss. A code that bears only one, or none, is to be whole at its K units.
Status bears_more(const Members& members, const layout::Manifest& manifest);
// On all that are left; all else of the version is durable there. `located` gets the manifest that was written, also where too few have taken it and this is
// not ok: others may go by it since.
Status write_last_manifest(Members& members, catalog::Located& located, uint64_t bytes);

}  // namespace holdfast::engine
