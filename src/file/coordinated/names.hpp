// Calls that change what a path leads to, made once for all replicas.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>

#include "base/raw_syscalls.hpp"
#include "file/coordinated/coordinated.hpp"

namespace holdfast::file {

// What a name leads to, as a number; 0: nothing. A replica looks before any leader can act: what could not be done then has not been done by a leader
// that was lost. It is the view of the call's claim.
uint64_t seen_at(const std::string& path);
uint64_t seen_then(const redundant::Turn& turn, uint64_t seen);

// `act` answers 0, or -1 and errno. `done_before`: the errno that it has where a leader that was lost had done it already. That is success then.
// `other`: the new name of a rename. Answers 0 or -1 and errno in all replicas.
int once(redundant::Replica& replica, Call call, const std::string& path, const std::string& other, int done_before, const std::function<int()>& act);

// The same of a call that has a sentence. `again`: a leader that was lost may have made it, or a part of it. Not where this replica has seen before
// that it could not be done.
Outcome once(redundant::Replica& replica, Call call, const std::string& path, const std::string& other,
             const std::function<Outcome(bool again)>& act);

// A call on a file of which each replica has a copy of its own, on its node's disk. What they are about to say of it is compared: `bytes` and `sum`
// of its bytes where it is written. `what`: the end of a sentence about a difference. `again`: as above. Nothing is known of what was there before.
struct OfCopies {
  Call call;
  uint64_t at = 0, bytes = 0, sum = 0;
  std::string what;
};
Outcome once_of_copies(redundant::Replica& replica, const std::string& path, const OfCopies& claim, const std::function<Outcome(bool again)>& act);
// A team that resumes has found a file there, to go on from: one that this job has written, or one that it has begun with.
void resumes_from(redundant::Replica& replica, const std::string& path, bool was_there_before);
// The outcome of the last call on that name came from a log: it is over since long.
bool was_long_ago(redundant::Replica& replica, const std::string& path);

// open(2) of a plain file: the leader makes and cuts it, the others open what is there then. The flags are the program's. A new file whose mode
// forbids what the flags ask for has that mode when all have it open.
Result<raw::Fd> open_once(redundant::Replica& replica, const std::string& path, int flags, mode_t mode);
// With an error that no other replica has this one would go another way than they: its team is ended. Never returns.
[[noreturn]] void cannot_open_alone(redundant::Replica& replica, const std::string& path, int error);

}  // namespace holdfast::file
