#include "file/coordinated/names.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/own_numbers.hpp"
#include "coding/checksum.hpp"
#include "file/coordinated/threads.hpp"
#include "target/lock_owner.hpp"

namespace holdfast::file {

namespace {

redundant::Claim claim_of(Call call, uint64_t at, const std::string& other, uint64_t view = 0, bool looks = false) {
  return {.call = uint64_t(call),
          .at = at,
          .sum = coding::plain_checksum(std::as_bytes(std::span(other.data(), other.size()))),
          .view = view,
          .looks = looks};
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
                      bool looks, const std::function<Outcome(const redundant::Turn&)>& act) {
  note_thread_on(path);
  const auto what = [&] { return fmt::format("{}, a call that changes names{}", path, said_of_threads_on(path)); };
  return unpack(replica.meet(name.subject(), claim_of(call, 0, other, view, looks), what, [&](const redundant::Turn& turn) {
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

raw::Fd open_with(const std::string& path, int flags, mode_t mode = 0) {
  return raw::out_of_the_way(raw::Fd(raw::openat(AT_FDCWD, path.c_str(), flags | O_CLOEXEC, mode)));
}

// A file of this user's whose mode forbids it, which has that mode again then.
raw::Fd open_in_spite_of_its_mode(const std::string& path, int flags, mode_t mode) {
  const raw::Fd there = open_with(path, O_PATH | O_NOFOLLOW);
  const std::string name = fmt::format("/proc/self/fd/{}", there.get());
  if (!there || raw::fchmodat(AT_FDCWD, name.c_str(), mode | S_IRUSR | S_IWUSR) != 0) return errno = EACCES, raw::Fd();
  raw::Fd own = open_with(name, flags & ~O_NOFOLLOW);
  const int error = errno;
  (void)raw::fchmodat(AT_FDCWD, name.c_str(), mode);
  return errno = error, std::move(own);
}

// What a leader that was lost has made: nobody can have written there yet. Anything else is somebody's own, and errno stays.
raw::Fd open_what_was_made(const std::string& path, int flags) {
  const int error = errno;
  struct stat state {};
  const bool is_new = raw::fstatat(AT_FDCWD, path.c_str(), &state, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(state.st_mode) && state.st_size == 0;
  if (!is_new) return errno = error, raw::Fd();
  raw::Fd own = open_with(path, flags | O_NOFOLLOW);
  if (!own && errno == EACCES) own = open_in_spite_of_its_mode(path, flags, state.st_mode & 07777);
  return own;
}

// In the place of a file that was removed or renamed since another team had opened it. It is for one that repeats what was done with it, which is in
// the log. What is not there fails: neither reads nor writes are possible.
raw::Fd stand_in() {
  const raw::Fd memory(int(syscall(SYS_memfd_create, "holdfast: gone", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
  if (!memory || raw::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) return {};
  return open_with(fmt::format("/proc/self/fd/{}", memory.get()), O_WRONLY);
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
  const bool is_done = (done_before == EEXIST && seen != 0) || (done_before == ENOENT && seen == 0);  // so nothing comes of it
  const Outcome outcome = by_the_leader(replica, name, call, path, other, seen, is_done, [&](const redundant::Turn& turn) {
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
  return by_the_leader(replica, name, call, path, other, seen, false, [&](const redundant::Turn& turn) {
    const uint64_t before = seen_then(turn, seen);
    if (was_renamed(turn, call, other, before)) return Outcome();
    return act(turn.again && (call == Call::open ? before == 0 : before != 0));
  });
}

Outcome once_of_copies(redundant::Replica& replica, const std::string& path, const OfCopies& claim, const std::function<Outcome(bool)>& act) {
  if (acting) return act(false);
  const OnName name(replica, path);
  note_thread_on(path);
  const redundant::Claim said{
      .call = uint64_t(claim.call), .at = claim.at, .bytes = claim.bytes, .sum = claim.sum, .looks = claim.call == Call::look};
  const auto what = [&] { return fmt::format("{}, {}{}", path, claim.what, said_of_threads_on(path)); };
  return unpack(replica.meet(name.subject(), said, what, [&](const redundant::Turn& turn) {
    acting = true;
    const Outcome made = act(turn.again);
    acting = false;
    return pack(made);
  }));
}

void resumes_from(redundant::Replica& replica, const std::string& path, bool was_there_before) {
  replica.resumes_from(was_there_before ? 0 : subject_of("name", path));
}

bool was_long_ago(redundant::Replica& replica, const std::string& path) { return replica.claimed_then(subject_of("name", path)).has_value(); }

namespace {

Bytes packed(mode_t mode) {
  const auto* const at = reinterpret_cast<const std::byte*>(&mode);
  return {at, at + sizeof mode};
}
std::optional<mode_t> mode_in(const Bytes& payload) {
  mode_t mode = 0;
  if (payload.size() != sizeof mode) return std::nullopt;
  std::memcpy(&mode, payload.data(), sizeof mode);
  return mode;
}

struct Opening {
  const std::string& path;
  const int flags;
  const mode_t mode;
  const int again = flags & ~(O_CREAT | O_EXCL | O_TRUNC);

  // In the leader. The payload is the mode that the file is to get when all have it open.
  Outcome make(raw::Fd& own, const redundant::Turn& turn, uint64_t seen) const {
    const bool may_be_made = (flags & O_CREAT) && turn.again && seen_then(turn, seen) == 0;
    own = open_with(path, flags, mode);
    if (!own && may_be_made && (errno == EEXIST || errno == EACCES)) own = open_what_was_made(path, again);
    Outcome outcome{.value = own ? 0 : uint64_t(errno)};
    if (own && (flags & O_CREAT)) outcome.payload = let_others_in(own.get(), may_be_made);
    return outcome;
  }

  // Whoever makes a file has it open, whatever its mode forbids. Here others open it after that: they are let in, and it gets its mode then.
  Bytes let_others_in(int fd, bool made_by_a_lost_one) const {
    const int access = flags & O_ACCMODE;
    const mode_t needed = access == O_RDONLY ? S_IRUSR : access == O_WRONLY ? S_IWUSR : S_IRUSR | S_IWUSR;
    struct stat state {};
    if (raw::fstat(fd, &state) != 0 || state.st_uid != geteuid()) return {};
    const mode_t found = state.st_mode & 07777;
    mode_t its = found;
    if (made_by_a_lost_one) its &= ~(needed & ~(mode & ~target::umask_of_this_process()));  // it may have been let in by that one
    if ((its & needed) == needed) return {};
    if ((found & needed) != needed && raw::fchmod(fd, found | needed) != 0) return {};
    return packed(its);
  }
};

}  // namespace

void cannot_open_alone(redundant::Replica& replica, const std::string& path, int error) {
  replica.cannot_catch_up(fmt::format("{}: another replica has opened it, and this one cannot: {}", path, std::strerror(error)));
  std::abort();  // never come to; the compiler does not know it of a virtual call
}

Result<raw::Fd> open_once(redundant::Replica& replica, const std::string& path, int flags, mode_t mode) {
  const Opening opening{path, flags, mode};
  const OnName name(replica, path);
  const uint64_t seen = flags & O_CREAT ? seen_at(path) : 0;
  raw::Fd own;
  note_thread_on(path);
  const bool cuts = (flags & O_TRUNC) != 0, makes = (flags & O_CREAT) && (seen == 0 || (flags & O_EXCL));
  const auto meet = [&](Call call, uint64_t at, uint64_t view, const std::function<Outcome(const redundant::Turn&)>& act) {
    const auto what = [&] { return fmt::format("{}, its open{}", path, said_of_threads_on(path)); };
    return unpack(replica.meet(name.subject(), claim_of(call, at, "", view, call == Call::open && !cuts && !makes), what,
                               [&](const redundant::Turn& turn) { return pack(act(turn)); }));
  };
  const Outcome outcome = meet(Call::open, uint64_t(flags), seen, [&](const redundant::Turn& turn) { return opening.make(own, turn, seen); });
  HF_TRY(outcome.status);
  if (outcome.value != 0) return Status::from_errno(int(outcome.value), path);
  const std::optional<mode_t> mode_at_last = mode_in(outcome.payload);
  if (!own) own = open_with(path, opening.again);
  if (!own && errno == ENOENT && replica.claimed_then(name.subject())) own = stand_in();
  if (!own && errno == EACCES && mode_at_last && replica.claimed_then(name.subject()))
    own = open_in_spite_of_its_mode(path, opening.again, *mode_at_last);
  if (!own) cannot_open_alone(replica, path, errno);
  if (!mode_at_last) return own;
  const Outcome set = meet(Call::set_mode, *mode_at_last, 0, [&](const redundant::Turn&) {
    return Outcome{.value = raw::fchmod(own.get(), *mode_at_last) != 0 ? uint64_t(errno) : 0};
  });
  HF_TRY(set.status);
  if (set.value != 0) return Status::from_errno(int(set.value), path + ": its mode cannot be set");
  return own;
}

}  // namespace holdfast::file
