// Keeping other openers out: the file's lock, and who else has the file open for writing. docs/coherence.md says who may believe
// what, and until when.
//
// One lock domain: an opener holds the lock of the first M + 1 members that it can reach, in the order of their index, and the
// sidecar's. Two such sets meet as long as each side misses at most M members. Where agents serve members it holds all that it can reach: an agent ends the
// locks of whom it hears nothing of, and he may not know. So who is taken for dead has no way left to any member that counts.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "engine/members.hpp"

namespace holdfast::engine {

using Locks = std::vector<std::unique_ptr<target::Lock>>;

// Looks, under the lock just taken, whether it is one's turn: false where the lock is to be let go and taken again a little later.
using IsMyTurn = std::function<Result<bool>()>;

// Excludes every other opener's commits, and repair, while the locks live. Waits for a busy lock as long as the settings say (Kind::busy).
// Kind::lost where it cannot be taken on enough members to keep anybody out: then nothing may be changed.
Result<Locks> lock_file(Members& members, const catalog::Located& located, const IsMyTurn& is_my_turn = {});

// What every member's lock of a writer that has the file open begins with; the opener's number follows.
inline constexpr const char* writer_lock_prefix = "writer.";
// The digits of the opener's number in a name that begins so, or in one that a lock by name has left beside it ("writer.7.held.0af3").
std::string opener_number(const std::string& name);

// By every rank of an opener: shared locks that say that it lives, as long as any of its ranks holds them.
Result<Locks> announce_opener(Members& members, const catalog::Located& located, uint64_t opener);
// The same on a member that was late then, before it is written to. Kind::busy where somebody asks at this moment whether the opener lives.
Result<std::unique_ptr<target::Lock>> announce_opener_on(Members& members, const catalog::Located& located, uint64_t opener, int member);
// By rank 0 of an opener of several ranks, before its first commit and until no rank announces it any more. All ranks write in its commits, under the
// file's lock that rank 0 alone holds. If rank 0 dies, others have to wait until all of them are gone.
Result<Locks> announce_leader(Members& members, const catalog::Located& located, uint64_t opener);
// By one rank when all have let go: its names go, and those of its rank 0 where that has announced itself.
void withdraw_opener(Members& members, const catalog::Located& located, uint64_t opener, bool had_leader);

// The openers beside `own` (0: none is one's own) that live or of which it cannot be known. Under the file's lock; names
// of openers that are dead are removed.
struct Others {
  bool alive = false;
  bool lone_alive = false;  // `lone`, whom the manifest calls so
  // Ranks of one live that have lost their rank 0: they may be in the middle of a commit whose lock went with it.
  bool without_leader = false;
};
// Whether anybody has to be asked: an opener that the manifest does not name may still be ending its last commit.
bool others_may_write(const layout::Manifest& manifest, uint64_t own_session);
Others other_openers(Members& members, const catalog::Located& located, uint64_t lone, uint64_t own);

// By the user's word: the names go by which locks of this file are held on its members, whoever holds them. One sentence for each.
Result<std::vector<std::string>> break_locks(const catalog::Located& located);

}  // namespace holdfast::engine
