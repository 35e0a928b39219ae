#include "file/coordinated/names.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "base/own_numbers.hpp"
#include "coding/checksum.hpp"

namespace holdfast::file {

namespace {

redundant::Claim claim_of(Call call, uint64_t at, const std::string& other, uint64_t view = 0) {
  return {.call = uint64_t(call), .at = at, .sum = coding::plain_checksum(std::as_bytes(std::span(other.data(), other.size()))), .view = view};
}

// This thread carries a call out: what that calls in its turn is a part of it.
thread_local bool acting = false;

Outcome by_the_leader(redundant::Replica& replica, Call call, const std::string& path, const std::string& other, uint64_t view,
                      const std::function<Outcome(const redundant::Turn&)>& act) {
  const auto what = [&] { return fmt::format("{}, a call that changes names", path); };
  return unpack(replica.meet(subject_of("name", path), claim_of(call, 0, other, view), what, [&](const redundant::Turn& turn) {
    acting = true;
    const Outcome made = act(turn);
    acting = false;
    return pack(made);
  }));
}

// In the place of a file that was removed or renamed since another team had opened it, for one that repeats what was done with it: that is in the log.
// What is not there fails: neither reads nor writes are possible.
raw::Fd stand_in() {
  const raw::Fd memory(int(syscall(SYS_memfd_create, "holdfast: gone", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
  if (!memory || raw::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) return {};
  return raw::out_of_the_way(raw::Fd(raw::openat(AT_FDCWD, fmt::format("/proc/self/fd/{}", memory.get()).c_str(), O_WRONLY | O_CLOEXEC)));
}

}  // namespace

int once(redundant::Replica& replica, Call call, const std::string& path, const std::string& other, int done_before,
         const std::function<int()>& act) {
  if (acting) return act();
  // As this replica sees it before any leader acts. What could not be done then has not been done by a leader that was lost.
  struct stat state {};
  const bool is_there = raw::fstatat(AT_FDCWD, path.c_str(), &state, AT_SYMLINK_NOFOLLOW) == 0;
  const bool could_be_done = done_before == ENOENT ? is_there : done_before != EEXIST || !is_there;
  const Outcome outcome = by_the_leader(replica, call, path, other, could_be_done, [&](const redundant::Turn& turn) {
    const bool could_be_done_then = turn.intended ? turn.intended->view != 0 : could_be_done;
    const int failed = act() == 0 ? 0 : errno;
    const bool done = failed == 0 || (turn.again && could_be_done_then && failed == done_before);
    return Outcome{.value = done ? 0 : uint64_t(failed)};
  });
  if (!outcome.status.ok() || outcome.value != 0) return errno = outcome.status.ok() ? int(outcome.value) : EIO, -1;
  return 0;
}

Outcome once(redundant::Replica& replica, Call call, const std::string& path, const std::string& other, const std::function<Outcome(bool)>& act) {
  return acting ? act(false) : by_the_leader(replica, call, path, other, 0, [&](const redundant::Turn& turn) { return act(turn.again); });
}

Result<raw::Fd> open_once(redundant::Replica& replica, const std::string& path, int flags, mode_t mode) {
  const int again = flags & ~(O_CREAT | O_EXCL | O_TRUNC);
  raw::Fd own;
  const auto act = [&](const redundant::Turn& turn) {
    own = raw::out_of_the_way(raw::Fd(raw::openat(AT_FDCWD, path.c_str(), flags | O_CLOEXEC, mode)));
    if (!own && turn.again && errno == EEXIST) own = raw::out_of_the_way(raw::Fd(raw::openat(AT_FDCWD, path.c_str(), again | O_CLOEXEC)));
    return pack(Outcome{.value = own ? 0 : uint64_t(errno)});
  };
  const auto what = [&] { return path + ", its open"; };
  const Outcome outcome = unpack(replica.meet(subject_of("name", path), claim_of(Call::open, uint64_t(flags), ""), what, act));
  HF_TRY(outcome.status);
  if (outcome.value != 0) return Status::from_errno(int(outcome.value), path);
  if (!own) own = raw::out_of_the_way(raw::Fd(raw::openat(AT_FDCWD, path.c_str(), again | O_CLOEXEC)));
  if (!own && errno == ENOENT && replica.claimed_then(subject_of("name", path))) own = stand_in();
  if (!own) return Status::from_errno(errno, path + ": another replica has opened it, and this one cannot");
  return own;
}

}  // namespace holdfast::file
