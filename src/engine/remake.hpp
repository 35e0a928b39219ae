// A version of a checkpoint takes the place of one that lacks members, and what survives of it stays where it is. A version never changes, so the new
// one's units are the same objects under a second name. Only the lost ones are made. docs/checkpoints.md
#pragma once
#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/located.hpp"

namespace holdfast::engine {

// `fresh` is as catalog::prepare_successor makes it of `of`; afterwards its manifest is the one that was written, last of all. Where it is not ok,
// what was written is to be removed and `of` is as it was. Members of `fresh` that failed are stale in its manifest: others may do. Where none is, it
// has to be written anew as a whole. A unit that survives is damaged, say, or no object can have two names there.
Status remake(const catalog::Located& of, catalog::Located& fresh, const Settings& settings);

}  // namespace holdfast::engine
