#include "file/coordinated/names.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/own_numbers.hpp"
#include "coding/checksum.hpp"

namespace holdfast::file {

namespace {

redundant::Claim claim_of(Call call, uint64_t at, const std::string& other, uint64_t view = 0) {
  return {.call = uint64_t(call), .at = at, .sum = coding::plain_checksum(std::as_bytes(std::span(other.data(), other.size()))), .view = view};
}

// Calls on one name are numbered: a thread has its turn until its call is over. Held before the name is looked at.
class OnName {
 public:
  OnName(const redundant::Replica& replica, const std::string& path) : subject_{&replica, subject_of("name", path)} {
    std::unique_lock lock(busy().mutex);
    busy().changed.wait(lock, [&] { return busy().subjects.insert(subject_).second; });
  }
  uint64_t subject() const { return subject_.second; }
  ~OnName() {
    std::lock_guard lock(busy().mutex);
    busy().subjects.erase(subject_);
    busy().changed.notify_all();
  }
  OnName(const OnName&) = delete;
  OnName& operator=(const OnName&) = delete;

 private:
  using Subject = std::pair<const redundant::Replica*, uint64_t>;
  struct Busy {
    std::mutex mutex;
    std::condition_variable changed;
    std::set<Subject> subjects;
  };
  static Busy& busy() {
    static auto* const all = new Busy;  // never destroyed: names are used to the end
    return *all;
  }
  const Subject subject_;
};

// This thread carries a call out: what that calls in its turn is a part of it.
thread_local bool acting = false;

Outcome by_the_leader(redundant::Replica& replica, const OnName& name, Call call, const std::string& path, const std::string& other, uint64_t view,
                      const std::function<Outcome(const redundant::Turn&)>& act) {
  const auto what = [&] { return fmt::format("{}, a call that changes names", path); };
  return unpack(replica.meet(name.subject(), claim_of(call, 0, other, view), what, [&](const redundant::Turn& turn) {
    acting = true;
    const Outcome made = act(turn);
    acting = false;
    return pack(made);
  }));
}

// By a leader that was lost. Made again, an exchange of two names would be undone.
bool was_renamed(const redundant::Turn& turn, Call call, const std::string& other, uint64_t before) {
  return turn.again && call == Call::rename && before != 0 && seen_at(other) == before;
}

// What a leader that was lost has made: nobody can have written there yet. Anything else is somebody's own.
raw::Fd open_what_was_made(const std::string& path, int flags) {
  struct stat state {};
  const bool is_new = raw::fstatat(AT_FDCWD, path.c_str(), &state, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(state.st_mode) && state.st_size == 0;
  if (!is_new) return errno = EEXIST, raw::Fd();
  return raw::out_of_the_way(raw::Fd(raw::openat(AT_FDCWD, path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC)));
}

// In the place of a file that was removed or renamed since another team had opened it, for one that repeats what was done with it: that is in the log.
// What is not there fails: neither reads nor writes are possible.
raw::Fd stand_in() {
  const raw::Fd memory(int(syscall(SYS_memfd_create, "holdfast: gone", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
  if (!memory || raw::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) return {};
  return raw::out_of_the_way(raw::Fd(raw::openat(AT_FDCWD, fmt::format("/proc/self/fd/{}", memory.get()).c_str(), O_WRONLY | O_CLOEXEC)));
}

}  // namespace

uint64_t seen_at(const std::string& path) {
  struct stat state {};
  return raw::fstatat(AT_FDCWD, path.c_str(), &state, AT_SYMLINK_NOFOLLOW) == 0 ? std::max<uint64_t>(state.st_ino, 1) : 0;
}
uint64_t seen_then(const redundant::Turn& turn, uint64_t seen) { return turn.intended ? turn.intended->view : seen; }

int once(redundant::Replica& replica, Call call, const std::string& path, const std::string& other, int done_before,
         const std::function<int()>& act) {
  if (acting) return act();
  const OnName name(replica, path);
  const uint64_t seen = seen_at(path);
  const Outcome outcome = by_the_leader(replica, name, call, path, other, seen, [&](const redundant::Turn& turn) {
    const uint64_t before = seen_then(turn, seen);
    if (was_renamed(turn, call, other, before)) return Outcome();
    const int failed = act() == 0 ? 0 : errno;
    const bool could_be_done =
        done_before == ENOENT ? before != 0 && seen_at(path) == 0 && call != Call::rename : done_before != EEXIST || before == 0;
    const bool done = failed == 0 || (turn.again && could_be_done && failed == done_before);
    return Outcome{.value = done ? 0 : uint64_t(failed)};
  });
  if (!outcome.status.ok() || outcome.value != 0) return errno = outcome.status.ok() ? int(outcome.value) : EIO, -1;
  return 0;
}

Outcome once(redundant::Replica& replica, Call call, const std::string& path, const std::string& other, const std::function<Outcome(bool)>& act) {
  if (acting) return act(false);
  const OnName name(replica, path);
  const uint64_t seen = seen_at(path);
  return by_the_leader(replica, name, call, path, other, seen, [&](const redundant::Turn& turn) {
    const uint64_t before = seen_then(turn, seen);
    if (was_renamed(turn, call, other, before)) return Outcome();
    return act(turn.again && (call == Call::open ? before == 0 : before != 0));
  });
}

Result<raw::Fd> open_once(redundant::Replica& replica, const std::string& path, int flags, mode_t mode) {
  const int again = flags & ~(O_CREAT | O_EXCL | O_TRUNC);
  const OnName name(replica, path);
  const uint64_t seen = flags & O_EXCL ? seen_at(path) : 0;
  raw::Fd own;
  const auto act = [&](const redundant::Turn& turn) {
    own = raw::out_of_the_way(raw::Fd(raw::openat(AT_FDCWD, path.c_str(), flags | O_CLOEXEC, mode)));
    if (!own && turn.again && errno == EEXIST && seen_then(turn, seen) == 0) own = open_what_was_made(path, again);
    return pack(Outcome{.value = own ? 0 : uint64_t(errno)});
  };
  const auto what = [&] { return path + ", its open"; };
  const Outcome outcome = unpack(replica.meet(name.subject(), claim_of(Call::open, uint64_t(flags), "", seen), what, act));
  HF_TRY(outcome.status);
  if (outcome.value != 0) return Status::from_errno(int(outcome.value), path);
  if (!own) own = raw::out_of_the_way(raw::Fd(raw::openat(AT_FDCWD, path.c_str(), again | O_CLOEXEC)));
  if (!own && errno == ENOENT && replica.claimed_then(name.subject())) own = stand_in();
  if (!own) return Status::from_errno(errno, path + ": another replica has opened it, and this one cannot");
  return own;
}

}  // namespace holdfast::file
