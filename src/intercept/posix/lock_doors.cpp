// Doors of locks: flock, lockf, and fcntl with a command of locks.
#include <sys/file.h>
#include <unistd.h>

#include "intercept/posix/copies.hpp"
#include "intercept/posix/decided.hpp"
#include "intercept/posix/door.hpp"
#include "intercept/posix/locks_as_one.hpp"

namespace {

using namespace holdfast::intercept::posix;
using holdfast::Result;
using holdfast::redundant::Replica;
namespace raw = holdfast::raw;

using File = std::shared_ptr<Description>;

std::string name_by(const Replica* replica, int fd, const File& file) {
  if (!replica) return "";
  const OurCode ours_now;
  return name_of_lock(*replica, fd, file);
}

// `asked`: the kernel's descriptor. It may let the caller wait for another process: not in our code, so that signals end it. Of several replicas the one
// who waits tells the others.
int lock_by(Replica* replica, int fd, int asked, const File& file, LockCall& call) {
  const std::string name = name_by(replica, fd, file);
  if (name.empty()) return ask_for_lock(asked, call);
  const OurCode ours_now;
  return lock_as_one(*replica, name, fd, asked, file, call);
}

int lock_served(Replica* replica, int fd, const File& file, LockCall& call) {
  const Result<int> asked = [&] {
    const OurCode ours_now;
    return file->begin_lock();
  }();
  if (!asked) return fail(*file, asked.status());
  if (lock_by(replica, fd, *asked, file, call) != 0) return -1;
  const OurCode ours_now;
  file->locked();
  return 0;
}

int lock_range(Replica* replica, int fd, const File& file, int command, struct flock* what) {
  const Result<struct flock> range = [&] {
    const OurCode ours_now;
    return file->range_of(command, *what);
  }();
  if (!range) return fail(*file, range.status());
  LockCall call = record_lock(command, *range);
  if (lock_served(replica, fd, file, call) != 0) return -1;
  if (command == F_GETLK || command == F_OFD_GETLK) *what = call.range;
  if (command == F_SETLK || command == F_SETLKW) file->set_locked_by_process();
  return 0;
}

// Of a number of the kernel's own, which all replicas have: where one has what another one may have as well.
template <class Native>
int lock_native(Replica* replica, int fd, int command, struct flock* what, Native native) {
  if (!what || name_by(replica, fd, nullptr).empty()) return native();
  struct flock range = *what;
  struct stat state {};
  if (range.l_whence == SEEK_CUR) range.l_start += raw::lseek(fd, 0, SEEK_CUR);
  else if (range.l_whence == SEEK_END && raw::fstat(fd, &state) == 0) range.l_start += state.st_size;
  else if (range.l_whence != SEEK_SET) return native();
  range.l_whence = SEEK_SET;
  LockCall call = record_lock(command, range);
  if (lock_by(replica, fd, fd, nullptr, call) != 0) return -1;
  if (command == F_GETLK || command == F_OFD_GETLK) *what = call.range;
  return 0;
}

template <class Native>
int lock_any(Replica* replica, int fd, int command, struct flock* what, Native native) {
  const File file = find_or_serve(fd);
  if (file && !what) return errno = EFAULT, -1;
  if (file) return lock_range(replica, fd, file, command, what);
  return replica ? lock_native(replica, fd, command, what, native) : native();
}

// lockf(3).
template <class Native>
int lock_from_here(Replica* replica, int fd, int command, off_t bytes, Native native) {
  if (!replica && !find_or_serve(fd)) return native();
  struct flock range {};
  range.l_whence = SEEK_CUR;
  range.l_len = bytes;
  range.l_type = command == F_ULOCK ? F_UNLCK : F_WRLCK;
  switch (command) {
    case F_ULOCK:
    case F_TLOCK: return lock_any(replica, fd, F_SETLK, &range, native);
    case F_LOCK: return lock_any(replica, fd, F_SETLKW, &range, native);
    case F_TEST: break;
    default: return errno = EINVAL, -1;
  }
  range.l_pid = 0;
  if (lock_any(replica, fd, F_GETLK, &range, native) != 0) return -1;
  const bool answered_natively = range.l_whence == SEEK_CUR;
  return answered_natively || range.l_type == F_UNLCK || range.l_pid == getpid() ? 0 : (errno = EACCES, -1);
}

}  // namespace

namespace holdfast::intercept::posix {

bool is_of_locks(int command) {
  switch (command) {
    case F_GETLK:
    case F_OFD_GETLK:
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_SETLK:
    case F_OFD_SETLKW: return true;
    default: return false;
  }
}

int lock_record(int fd, int command, struct flock* what, int (*native)(int, int, ...), const void* caller) {
  Replica* const replica = replica_for(caller);
  return observed(fd, {Counter::others}, [=] { return lock_any(replica, fd, command, what, [=] { return native(fd, command, what); }); });
}

}  // namespace holdfast::intercept::posix

HF_DOOR int flock(int fd, int operation) noexcept {
  Replica* const replica = replica_for(HF_CALLER);
  return observed(fd, {Counter::others}, [=] {
    const auto native = [=] { return real().flock(fd, operation); };
    const File file = find_or_serve(fd);
    std::optional<LockCall> call = whole_lock(operation);
    if (file && !call) return errno = EINVAL, -1;
    if (!call || (!file && name_by(replica, fd, nullptr).empty())) return native();
    return file ? lock_served(replica, fd, file, *call) : lock_by(replica, fd, fd, nullptr, *call);
  });
}
HF_DOOR int lockf(int fd, int command, off_t bytes) {
  Replica* const replica = replica_for(HF_CALLER);
  return observed(fd, {Counter::others},
                  [=] { return lock_from_here(replica, fd, command, bytes, [=] { return real().lockf(fd, command, bytes); }); });
}
HF_DOOR int lockf64(int fd, int command, off64_t bytes) {
  Replica* const replica = replica_for(HF_CALLER);
  return observed(fd, {Counter::others},
                  [=] { return lock_from_here(replica, fd, command, bytes, [=] { return real().lockf64(fd, command, bytes); }); });
}
