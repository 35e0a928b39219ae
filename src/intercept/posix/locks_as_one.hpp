// Locks of a redundant job: the kernel gives each to one replica of a rank, the leader, and all of them have it. A leader that is lost takes its locks
// along. The next one takes what its rank holds before it asks for anything else (docs/decisions/0076).
#pragma once
#include <fcntl.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "intercept/posix/descriptors.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::intercept::posix {

struct LockCall {
  enum class Kind : uint8_t { record, open_record, whole, question, open_question };  // of fcntl, its OFD locks, flock, and F_GETLK
  Kind kind = Kind::record;
  bool waits = false;
  struct flock range {};  // from the file's beginning; what F_GETLK answers
};
LockCall record_lock(int command, const struct flock& range);
// Of flock(2); nothing where it is no operation of its.
std::optional<LockCall> whole_lock(int operation);

// What the kernel says to this process: 0, or -1 and errno.
int ask_for_lock(int fd, LockCall& call);

// The name by which all replicas know the file; empty: this one asks for itself. `file`: null where the number is the kernel's own.
std::string name_of_lock(const redundant::Replica& replica, int fd, const std::shared_ptr<Description>& file);
// `asked`: the descriptor by which the kernel is asked.
int lock_as_one(redundant::Replica& replica, const std::string& name, int fd, int asked, const std::shared_ptr<Description>& file, LockCall& call);
// The doors that lock_doors.cpp has: fcntl(2) with a command of locks.
bool is_of_locks(int command);
int lock_record(int fd, int command, struct flock* what, int (*native)(int, int, ...), const void* caller);

// The process has closed a number of the file; and any number.
void forget_record_locks(const std::string& name);
void forget_locks_of_closed();
extern std::atomic<bool> any_held;

}  // namespace holdfast::intercept::posix
