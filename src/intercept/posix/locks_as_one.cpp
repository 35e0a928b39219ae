#include "intercept/posix/locks_as_one.hpp"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/keep_errno.hpp"
#include "base/quiet_thread.hpp"
#include "file/coordinated/held_locks.hpp"
#include "file/coordinated/names.hpp"
#include "intercept/posix/as_one.hpp"
#include "intercept/posix/checkpoints.hpp"
#include "intercept/posix/decided.hpp"
#include "intercept/posix/paths.hpp"

namespace holdfast::intercept::posix {

namespace {

using redundant::Replica;
using Clock = std::chrono::steady_clock;
using Kind = LockCall::Kind;

// In which the next leader of a rank takes what that rank holds. After that somebody else may have it.
constexpr std::chrono::milliseconds patience(1000), pause(1);

struct Held {
  Kind kind;
  std::string name;
  int fd = -1, asked = -1;  // the program's number, and the one by which the kernel is asked
  bool is_native = false;
  std::weak_ptr<Description> file;
  uint64_t number = 0;  // of the file, by which the hub knows it
  file::HeldRanges ranges = {};

  bool lives() const { return is_native ? name_of_number(fd) == name : !file.expired(); }
};

struct HeldLocks {
  std::mutex mutex;
  std::vector<Held> all;
  uint32_t successions = 0;  // of which this process has taken what was held
  bool is_called = false;
};
HeldLocks& held_locks() {
  static auto* const all = new HeldLocks;  // never destroyed: locks are held to the end
  return *all;
}

bool is_question(Kind kind) { return kind == Kind::question || kind == Kind::open_question; }

int command_of(const LockCall& call) {
  switch (call.kind) {
    case Kind::question: return F_GETLK;
    case Kind::open_question: return F_OFD_GETLK;
    case Kind::open_record: return call.waits ? F_OFD_SETLKW : F_OFD_SETLK;
    default: return call.waits ? F_SETLKW : F_SETLK;
  }
}

// Under the mutex. Answers the files of which the kernel has not given all.
std::set<std::string> take_all(HeldLocks& held) {
  std::erase_if(held.all, [](const Held& one) { return one.ranges.all().empty() || !one.lives(); });
  std::set<std::string> refused;
  for (const Held& one : held.all)
    for (const auto& range : one.ranges.all()) {
      LockCall again{one.kind, false, file::as_lock(range)};
      if (ask_for_lock(one.asked, again) != 0) refused.insert(one.name);
    }
  return refused;
}

// The lost leader may still be on its way out, with its locks.
void take_what_is_left() {
  ++inside;
  HeldLocks& held = held_locks();
  std::set<std::string> refused;
  for (const auto until = Clock::now() + patience; Clock::now() < until;) {
    std::this_thread::sleep_for(pause);
    const std::lock_guard lock(held.mutex);
    refused = take_all(held);
    if (refused.empty()) return;
  }
  for (const std::string& name : refused)
    complain(name, "another process has a lock that this rank held when its leader was lost; what both write there may be mixed");
}

// Once behind each loss of a leader, by who comes first: a thread that asks, or the one that has heard of it.
void take_over(Replica& replica) {
  HeldLocks& held = held_locks();
  const std::lock_guard lock(held.mutex);
  const uint32_t successions = replica.successions();
  if (successions == held.successions || !replica.leads()) return;
  held.successions = successions;
  if (!take_all(held).empty()) (void)start_quiet_thread(take_what_is_left);
}

void be_called_when_it_leads(Replica& replica) {
  HeldLocks& held = held_locks();
  const std::lock_guard lock(held.mutex);
  if (std::exchange(held.is_called, true)) return;
  replica.when_a_leader_is_lost([&replica] { take_over(replica); });
}

// Under the mutex.
Held& found_or_made(HeldLocks& held, const Held& like) {
  const auto is_it = [&](const Held& one) {
    return one.kind == like.kind && one.name == like.name &&
           (like.kind == Kind::record || (one.is_native ? one.fd == like.fd : one.file.lock() == like.file.lock()));
  };
  const auto found = std::find_if(held.all.begin(), held.all.end(), is_it);
  if (found == held.all.end()) return held.all.push_back(like), held.all.back();
  found->fd = like.fd, found->asked = like.asked, found->is_native = like.is_native, found->file = like.file;
  return *found;
}

// `asks`: this process has not asked the kernel, and leads by now, or it gives up what it may have taken.
void note(Replica& replica, const Held& like, LockCall call, bool asks) {
  HeldLocks& held = held_locks();
  const KeepErrno keep;
  const std::lock_guard lock(held.mutex);
  found_or_made(held, like).ranges.set(call.range);
  any_held = true;
  call.waits = false;
  if (asks && (call.range.l_type == F_UNLCK || replica.leads())) (void)ask_for_lock(like.asked, call);
}

// As the kernel sees it, where names may be links to one file. Nodes that share a file system have other numbers for that.
uint64_t number_of_file(const Replica& replica, int fd) {
  struct stat state {};
  if (raw::fstat(fd, &state) != 0) return 0;
  return file::subject_of("locks", fmt::format("{} {}", state.st_ino, replica.shares_node() ? state.st_dev : 0));
}
redundant::LockedPart part_of(Kind kind, const file::HeldRanges::Range& range, redundant::LockedPart::What what) {
  const uint64_t kind_for_the_kernel = kind == Kind::whole ? 1 : 0;
  return {what, kind_for_the_kernel, uint64_t(range.begin), uint64_t(range.end), range.type == F_WRLCK ? 1u : 0u};
}

// In the leader. The kernel also gives what another rank's leader has lost by its death. It goes back then, until that rank's next one has it.
int ask_for_lock_of_the_rank(Replica& replica, const Held& like, LockCall& call) {
  for (const auto until = Clock::now() + patience;;) {
    if (ask_for_lock(like.asked, call) != 0) return -1;
    if (is_question(call.kind)) return 0;
    const auto what = Clock::now() < until ? redundant::LockedPart::takes : redundant::LockedPart::takes_over;
    if (replica.call_lock(like.number, part_of(call.kind, file::range_of(call.range), what))) return 0;
    LockCall back = call;
    back.range.l_type = F_UNLCK, back.waits = false;
    (void)ask_for_lock(like.asked, back);
    {
      HeldLocks& held = held_locks();
      const std::lock_guard lock(held.mutex);
      (void)take_all(held);  // of an upgrade the lock before it
    }
    std::this_thread::sleep_for(5 * pause);
  }
}

// The kernel's answer to the leader, and what was asked for: threads that lock one file in another order in two replicas are found out.
struct Answer {
  int64_t result = 0, error = 0, type = 0, start = 0, length = 0;
  struct flock found {};
};
Bytes packed(const Answer& answer) {
  const auto* const at = reinterpret_cast<const std::byte*>(&answer);
  return {at, at + sizeof answer};
}
Answer asked_for(const LockCall& call) { return {0, 0, call.range.l_type, call.range.l_start, call.range.l_len, {}}; }

int take(Replica& replica, const Held& like, LockCall& call) {
  static constexpr const char* names[] = {"lock", "open lock", "flock", "question of locks", "question of open locks"};
  bool asked = false;
  const Answer mine = asked_for(call);
  const Bytes told_answer = told(replica, names[size_t(call.kind)], like.name, [&] {
    asked = true;
    take_over(replica);
    Answer answer = mine;
    answer.result = ask_for_lock_of_the_rank(replica, like, call);
    answer.error = answer.result == 0 ? 0 : errno;
    answer.found = call.range;
    return packed(answer);
  });
  Answer answer;
  if (told_answer.size() == sizeof answer) std::memcpy(static_cast<void*>(&answer), told_answer.data(), sizeof answer);
  if (answer.type != mine.type || answer.start != mine.start || answer.length != mine.length)
    replica.differs(like.name + ", a lock where the leader has asked for another one" +
                    (like.name.ends_with("-shm") ? "; SQLite's mode WAL is not served: use PRAGMA journal_mode = DELETE" : ""));
  if (answer.result != 0) return errno = int(answer.error), -1;
  if (is_question(call.kind)) call.range = answer.found;
  else note(replica, like, call, !asked);
  return 0;
}

// When all have come: what one reads without the others was locked until then.
int give_up(Replica& replica, const Held& like, LockCall& call) {
  bool asked = false;
  const file::OfCopies claim{file::Call::look, uint64_t(call.range.l_start), uint64_t(call.range.l_len), uint64_t(call.kind), "the end of a lock"};
  const file::Outcome outcome = file::once_of_copies(replica, like.name, claim, [&](bool) {
    asked = true;
    (void)replica.call_lock(like.number, part_of(call.kind, file::range_of(call.range), redundant::LockedPart::gives_up));
    return file::Outcome{.value = ask_for_lock(like.asked, call) == 0 ? 0 : uint64_t(errno)};
  });
  if (outcome.status.ok() && outcome.value == 0) note(replica, like, call, !asked);
  return outcome.status.ok() && outcome.value == 0 ? 0 : (errno = outcome.status.ok() ? int(outcome.value) : EIO, -1);
}

// The kernel has forgotten them with the number. The hub hears of it from the leader.
template <class Which>
void forget_those(Which which) {
  if (!any_held || !of_this_process()) return;
  HeldLocks& held = held_locks();
  Replica* const replica = Replica::now();
  const KeepErrno keep;
  const OurCode ours_now;
  const std::lock_guard lock(held.mutex);
  const bool tells = replica && replica->leads();
  std::erase_if(held.all, [&](const Held& one) {
    if (!which(one)) return false;
    for (const auto& range : one.ranges.all())
      if (tells) (void)replica->call_lock(one.number, part_of(one.kind, range, redundant::LockedPart::gives_up));
    return true;
  });
  any_held = !held.all.empty();
}

}  // namespace

std::atomic<bool> any_held{false};

LockCall record_lock(int command, const struct flock& range) {
  const bool of_open = command == F_OFD_SETLK || command == F_OFD_SETLKW;
  const bool asks = command == F_GETLK || command == F_OFD_GETLK;
  const Kind kind = asks ? (command == F_GETLK ? Kind::question : Kind::open_question) : of_open ? Kind::open_record : Kind::record;
  return {kind, command == F_SETLKW || command == F_OFD_SETLKW, range};
}

std::optional<LockCall> whole_lock(int operation) {
  struct flock all {};
  switch (operation & ~LOCK_NB) {
    case LOCK_SH: all.l_type = F_RDLCK; break;
    case LOCK_EX: all.l_type = F_WRLCK; break;
    case LOCK_UN: all.l_type = F_UNLCK; break;
    default: return std::nullopt;
  }
  return LockCall{Kind::whole, (operation & LOCK_NB) == 0, all};
}

int ask_for_lock(int fd, LockCall& call) {
  if (call.kind != Kind::whole) return raw::fcntl_lock(fd, command_of(call), &call.range);
  const int type = call.range.l_type == F_UNLCK ? LOCK_UN : call.range.l_type == F_RDLCK ? LOCK_SH : LOCK_EX;
  return raw::flock(fd, type | (call.waits ? 0 : LOCK_NB));
}

std::string name_of_lock(const Replica& replica, int fd, const std::shared_ptr<Description>& file) {
  const std::string name = file ? file->path() : name_of_number(fd);
  return name.empty() || is_each_replicas_own(replica, name) || checkpoint_at(AT_FDCWD, name.c_str()) ? "" : name;
}

int lock_as_one(Replica& replica, const std::string& name, int fd, int asked, const std::shared_ptr<Description>& file, LockCall& call) {
  be_called_when_it_leads(replica);
  const Held like{call.kind, name, fd, asked, !file, file, number_of_file(replica, asked)};
  return call.range.l_type == F_UNLCK && !is_question(call.kind) ? give_up(replica, like, call) : take(replica, like, call);
}

void forget_record_locks(const std::string& name) {
  forget_those([&](const Held& one) { return one.kind == Kind::record && one.name == name; });
}

void forget_locks_of_closed() {
  forget_those([](const Held& one) { return !one.lives(); });
}

}  // namespace holdfast::intercept::posix
