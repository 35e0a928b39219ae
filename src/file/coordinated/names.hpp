// Calls that change what a path leads to, made once for all replicas.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>

#include "base/raw_syscalls.hpp"
#include "file/coordinated/coordinated.hpp"

namespace holdfast::file {

// `act` answers 0, or -1 and errno. `done_before`: the errno that it has where a leader that was lost had done it already; that is success then.
// Answers 0 or -1 and errno in all replicas.
int once(redundant::Replica& replica, Call call, const std::string& path, const std::string& other, int done_before, const std::function<int()>& act);

// The same of a call that has a sentence. `again`: a leader that was lost may have made it, or a part of it.
Outcome once(redundant::Replica& replica, Call call, const std::string& path, const std::string& other,
             const std::function<Outcome(bool again)>& act);

// open(2) of a plain file: the leader makes and cuts it, the others open what is there then. The flags are the program's.
Result<raw::Fd> open_once(redundant::Replica& replica, const std::string& path, int flags, mode_t mode);

}  // namespace holdfast::file
