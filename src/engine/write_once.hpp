// The other way to a protected file, beside open and commits: content that is there already is written once and never changes. Nobody else
// knows of the file before it is whole, so there is no lock, no journal and no session. Units come first, then records, then fsync of
// everything, and last the one manifest: while there is none, there is no file. docs/checkpoints.md
#pragma once
#include <functional>

#include "base/bytes.hpp"
#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/located.hpp"

namespace holdfast::engine {

// Fills `into` with the content from `offset` on. Called in order, each byte once.
using ReadContent = std::function<Status(uint64_t offset, ByteSpan into)>;

// `located` has a version's manifest, as catalog::prepare_version makes it, and its directories; afterwards its manifest is the one that was
// written. Members that fail are lost and named stale in it. So they are where it is not ok: units and manifest could be made durable on fewer than
// K + 1 members. What was written is to be removed then, unless it counts for others; where it cannot be, it is an orphan and no harm.
Status write_once(catalog::Located& located, uint64_t bytes, const ReadContent& read, const Settings& settings);

// Where it is not ok: whether members have its manifest all the same, or may have. Others may have dropped what is older for it: it stays until another
// version of the same file is there.
bool counts_for_others(const catalog::Located& version);

// A file that was written by opens and commits, and that nobody has open any more, becomes a version: with one manifest more, the last. Not ok, and it
// is none: it was not closed by all who have opened it, or more than M members are lost. Otherwise their number: what is nowhere else is worth having
// without redundancy, too.
Result<int> make_final(const catalog::Located& located, const layout::Version& version, const Settings& settings);

}  // namespace holdfast::engine
