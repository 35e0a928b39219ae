// Keeping other openers out: the file's lock, and who else has the file open for writing. docs/coherence.md says who may believe
// what, and until when.
//
// One lock domain: an opener holds the lock of the first M + 1 members that it can reach, in the order of their index, and the
// sidecar's. Two such sets meet as long as each side misses at most M members.
#pragma once
#include <memory>
#include <vector>

#include "layers/protected/members.hpp"

namespace holdfast::layers {

using Locks = std::vector<std::unique_ptr<target::Lock>>;

// Excludes every other opener's commits, and repair, while the locks live. Waits for a busy lock up to ten minutes (Kind::busy).
// Kind::lost where it cannot be taken on enough members to keep anybody out: then nothing may be changed.
Result<Locks> lock_file(Members& members, const catalog::Located& located);

// What every member's lock of a writer that has the file open begins with; the opener's number follows.
inline constexpr const char* writer_lock_prefix = "writer.";

// By every rank of an opener: shared locks that say that it lives, as long as any of its ranks holds them.
Result<Locks> announce_opener(Members& members, const catalog::Located& located, uint64_t opener);
// By one rank when all have let go: its name goes.
void withdraw_opener(Members& members, const catalog::Located& located, uint64_t opener);

// The openers beside `own` (0: none is one's own) that live or of which it cannot be known. Under the file's lock; names
// of openers that are dead are removed.
struct Others {
  bool alive = false;
  bool lone_alive = false;  // the one that the manifest calls lone
};
Others other_openers(Members& members, const catalog::Located& located, uint64_t own);

}  // namespace holdfast::layers
