// Doors that change what is known about a file beside its content: permissions, owner, times, names by link. They act on what stands at
// the path; that this was no edit from outside is written down.
#include <sys/time.h>
#include <utime.h>

#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/shell_word.hpp"
#include "catalog/catalog.hpp"
#include "coding/checksum.hpp"
#include "intercept/posix/alike.hpp"
#include "intercept/posix/as_one.hpp"
#include "intercept/posix/checkpoints.hpp"
#include "intercept/posix/decided.hpp"
#include "intercept/posix/descriptor_names.hpp"
#include "intercept/posix/door.hpp"
#include "intercept/posix/open.hpp"
#include "intercept/posix/settings.hpp"
#include "intercept/posix/tree_of_process.hpp"

namespace {

using namespace holdfast::intercept::posix;
namespace catalog = holdfast::catalog;

// The headers promise that no path is null; Linux takes it.
bool is_null(const char* path) { return path == nullptr; }

// A call that changes what is known about a file, and what it was told. In a redundant job it is made once, where all replicas make the same one.
struct Change {
  const char* call;
  uint64_t first = 0, second = 0;
  const char* name = nullptr;
  const void* value = nullptr;
  size_t bytes = 0;
  std::string text() const {
    const uint64_t sum = value ? holdfast::coding::plain_checksum({static_cast<const std::byte*>(value), bytes}) : 0;
    return fmt::format("{} {} {} {} {} {}", call, first, second, name ? name : "", bytes, sum);
  }
};
Change attribute_of(const char* call, const char* name, const void* value = nullptr, size_t bytes = 0, int flags = 0) {
  return {call, uint64_t(flags), 0, name, value, value ? bytes : 0};
}
Change times_of(const char* call, const void* times, size_t bytes) { return {.call = call, .value = times, .bytes = times ? bytes : 0}; }
// The kernel does not look at the seconds beside "now" and "as it is", and programs leave them unset.
Change times_of(const char* call, const struct timespec* times) {
  if (!times) return {.call = call};
  struct timespec said[] = {times[0], times[1]};
  for (struct timespec& one : said)
    if (one.tv_nsec == UTIME_NOW || one.tv_nsec == UTIME_OMIT) one.tv_sec = 0;
  return {.call = call, .first = holdfast::coding::plain_checksum(std::as_bytes(std::span(said))), .bytes = sizeof said};
}

// This thread carries a change out for all replicas: what all have to do before that has been done.
thread_local bool is_settled = false;

// What this process has written to the file arrives now, or it would change the times later on. What fails is told later on.
void settle_plain(int directory, const char* path) {
  struct stat state;
  if (is_settled || !ProcessFile::any_plain() || is_null(path) || holdfast::raw::fstatat(directory, path, &state, 0) != 0) return;
  const OurCode ours_now;
  if (const auto file = ProcessFile::find(ProcessFile::plain_id(state.st_dev, state.st_ino))) (void)file->flush_below();
}
holdfast::Result<catalog::Located> settle_protected(const std::string& path) {
  auto located = catalog::locate(path, settings());
  const auto file = located && ProcessFile::any_written() ? ProcessFile::find(located->manifest.file_id) : nullptr;
  if (!file || is_settled) return located;
  (void)file->flush_below();
  return catalog::locate(path, settings());
}

using NewMode = std::optional<mode_t>;  // where the change is one of the permissions

// A stub that its owner may not read, and while this lives he may: what it says of the file is needed.
class ReadableStub {
 public:
  ReadableStub(int directory, const char* path) : directory_(directory), path_(path) {
    const bool there = holdfast::raw::fstatat(directory, path, &state_, 0) == 0 && stub_sized(state_.st_mode, state_.st_size);
    if (!there || (state_.st_mode & 0400) || state_.st_uid != geteuid() || is_stub_at(directory, path)) return;
    changed_ = real().fchmodat(directory, path, (state_.st_mode & 07777) | 0400, 0) == 0;
    if (changed_ && !is_stub_at(directory, path)) put_back();
  }
  // With the permissions that it had.
  void put_back() {
    const KeepErrno keep;
    (void)real().fchmodat(directory_, path_, state_.st_mode & 07777, 0);
    changed_ = false;
  }
  bool belongs_to_caller() const { return geteuid() == 0 || geteuid() == state_.st_uid; }
  bool was_unreadable() const { return changed_; }

 private:
  const int directory_;
  const char* const path_;
  struct stat state_ = {};
  bool changed_ = false;
};

// Whether the stub says these permissions, or says nothing to this user.
bool shows_mode(int directory, const char* path, mode_t mode) {
  mode_t shown = 0;
  return !is_stub_at(directory, path, &shown) || (shown & 0777) == (mode & 0777);
}

holdfast::Status publish_mode(const std::string& path, mode_t mode) {
  auto located = settle_protected(path);
  if (!located) return located.status();
  if (!located->read_only.ok()) return located->read_only;
  return located->path_keeper->publish_with_mode(located->manifest, mode);
}

// A stub's text says what its own bits do not, so it is renewed, while it can still be read. Where it cannot be renewed its own bits are changed,
// which says all but that nobody may write any more.
template <class Native>
int change_mode_of_stub(int directory, const char* path, mode_t mode, ReadableStub& stub, Native native) {
  holdfast::Status published(holdfast::Kind::io, "belongs to somebody else", EACCES);
  if (stub.belongs_to_caller()) published = publish_mode(full_path(directory, path), mode);
  if (published.ok() && shows_mode(directory, path, mode)) return 0;
  if (native(directory, path) != 0) {
    if (stub.was_unreadable()) stub.put_back();
    return -1;
  }
  if (shows_mode(directory, path, mode)) return 0;
  stub.put_back();
  complain(path, "keeps its permissions, for the note that stands for it says that it may be written and cannot be renewed: " + published.sentence());
  return errno = published.ok() ? EACCES : published.to_errno(), -1;
}

// Where its local file is.
template <class Native>
int change_checkpoint(int directory, const char* path, bool follow, NewMode mode, const char* at, Native native) {
  struct stat state;
  const bool changes_mode = mode && holdfast::raw::fstatat(AT_FDCWD, at, &state, 0) == 0 && (state.st_mode & 0777) != (*mode & 0777);
  const int result = native(AT_FDCWD, at);
  const auto file = result == 0 && changes_mode ? checkpoint_at(directory, path, follow) : std::nullopt;
  if (!file) return result;
  const OurCode ours_now;
  Checkpoints::of_process(settings())->mode_changed(*file);
  return result;
}

// `native(directory, path)` is the change. A file that cannot be found is as it is: the change answers for itself.
template <class Native>
int change_this(int directory, const char* path, bool follow, NewMode mode, Native native) {
  if (follow && inside == 0)
    if (const std::string instead = path_instead(path); !instead.empty()) return change_this(AT_FDCWD, instead.c_str(), true, mode, native);
  if (const SeenAt seen = see_checkpoint(directory, path, follow); !seen.natively)
    return call_where_it_is(seen, directory, path, [&](const char* at) { return change_checkpoint(directory, path, follow, mode, at, native); });
  if (inside == 0) settle_plain(directory, path);
  if (inside > 0 || !is_protected(directory, path, follow)) return native(directory, path);
  const OurCode ours_now;
  if (mode) {
    ReadableStub stub(directory, path);
    if (is_stub_at(directory, path)) return change_mode_of_stub(directory, path, *mode, stub, native);
  }
  auto located = settle_protected(full_path(directory, path));
  const int result = native(directory, path);
  if (result != 0 || !located || !located->read_only.ok()) return result;
  const int error = errno;
  auto& keeper = *located->path_keeper;
  const holdfast::Status published = mode ? keeper.publish_with_mode(located->manifest, *mode) : keeper.publish(located->manifest, false);
  if (!published.ok()) complain(path, published.sentence());
  errno = error;
  return result;
}

// By the leader, for all. One that was lost may have made it. A mode, an owner and times are then set again, and an attribute is as it is to be.
template <class Act>
int change_for_all(holdfast::redundant::Replica& replica, const std::string& full, const Change& change, Act act) {
  const auto outcome = holdfast::file::once(replica, holdfast::file::Call::set_attributes, full, change.text(), [&](bool again) {
    HeldComplaints held;
    const bool before = std::exchange(is_settled, true);
    const int failed = act() == 0 ? 0 : errno;
    is_settled = before;
    const bool done = failed == 0 || (again && change.name && (failed == ENODATA || failed == EEXIST));
    return holdfast::file::Outcome{{}, done ? 0 : uint64_t(failed), packed(held.lines)};
  });
  say_packed(outcome.payload);
  return outcome.value == 0 ? 0 : (errno = int(outcome.value), -1);
}

// Null: each process for itself.
holdfast::redundant::Replica* replica_that_changes() {
  return inside == 0 && holdfast::in_mpi_calls == 0 ? holdfast::redundant::Replica::now() : nullptr;
}

template <class Act>
int change_once(int directory, const char* path, const Change& change, Act act) {
  holdfast::redundant::Replica* const replica = replica_that_changes();
  if (!replica || is_null(path)) [[likely]]
    return act();
  std::string full;
  {
    const OurCode ours_now;
    full = catalog::absolute_path(full_path(directory, path));
    if (is_each_replicas_own(*replica, full)) full.clear();
  }
  if (full.empty()) return act();
  settle_plain(directory, path);
  if (is_protected(directory, path)) (void)settle_protected(full);
  return change_for_all(*replica, full, change, act);
}

template <class Native>
int change_entry(int directory, const char* path, bool follow, NewMode mode, const Change& change, Native native) {
  return change_once(directory, path, change, [=] {
    return observed_name(Counter::others, directory, path, [=] { return change_this(directory, path, follow, mode, native); });
  });
}
template <class Native>
int change_entry(int directory, const char* path, bool follow, const Change& change, Native native) {
  return change_entry(directory, path, follow, {}, change, native);
}

// By descriptor: where the file's path is now. `native(path)`.
template <class ByPath, class Native>
int change_this(int fd, NewMode mode, ByPath by_path, Native native) {
  auto file = find(fd);
  if (!file) {
    const int result = native();
    if (result == 0 || errno != EBADF || !(file = adopt(fd))) return result;
  }
  const std::string path = [&] {
    const OurCode ours_now;
    if (!is_settled) (void)file->flush_below();  // what fails is told later on
    return file->path();
  }();
  return change_this(AT_FDCWD, path.c_str(), true, mode, [&](int, const char* at) { return by_path(at); });
}
template <class ByPath, class Native>
int change_open(int fd, NewMode mode, const Change& change, ByPath by_path, Native native) {
  const auto act = [=] { return observed(fd, {Counter::others}, [=] { return change_this(fd, mode, by_path, native); }); };
  holdfast::redundant::Replica* const replica = replica_that_changes();
  if (!replica) [[likely]]
    return act();
  std::string name;
  {
    const OurCode ours_now;
    const auto file = find_or_adopt(fd);
    name = file ? file->path() : name_of_number(fd);
    if (file) (void)file->flush_below();
  }
  return name.empty() ? act() : change_for_all(*replica, name, change, act);
}
template <class ByPath, class Native>
int change_open(int fd, const Change& change, ByPath by_path, Native native) {
  return change_open(fd, {}, change, by_path, native);
}

// What is asked of the entry at the path. `native(path)`, and of another descriptor `native(nullptr)`.
template <class Native>
auto ask_entry(int fd, Native native) -> decltype(native(nullptr)) {
  const auto file = find_or_adopt(fd);
  if (!file) return native(nullptr);
  const std::string path = [&] {
    const OurCode ours_now;
    return file->path();
  }();
  return native(path.c_str());
}

// The same of a path. What is asked of a checkpoint is answered by what stands for it, and nothing is fetched for that.
template <class Native>
auto ask_path(const char* path, bool follow, Native native) -> decltype(native(path)) {
  if (holdfast::in_mpi_calls > 0) return native(path);
  const SeenAt seen = describe_checkpoint(AT_FDCWD, path, follow);
  return seen.natively ? native(path) : call_where_it_is(seen, AT_FDCWD, path, native);
}

// Free space changes at any time: what the leader has seen all replicas are told.
template <class Filled, class Name>
int tell_space(const void* caller, const char* kind, int result, Filled* into, Name name_of) {
  auto* const replica = into ? replica_for(caller) : nullptr;
  if (!replica) [[likely]]
    return result;
  const OurCode ours_now;
  const int error = errno;
  const std::string name = name_of(*replica);
  errno = error;
  return name.empty() ? result : told(*replica, kind, name, result, into, sizeof *into);
}
template <class Filled, class Native>
int ask_space(const void* caller, const char* path, Filled* into, Native native) {
  if (is_null(path)) return native(path);
  return tell_space(caller, "statvfs", ask_path(path, true, native), into, [=](auto& replica) { return name_asked(replica, AT_FDCWD, path); });
}
template <class Filled, class Native>
int ask_space(const void* caller, int fd, Filled* into, Native native) {
  const int result = ask_entry(fd, native);
  return result != 0 ? result : tell_space(caller, "fstatvfs", result, into, [=](auto&) { return name_of_number(fd); });
}

// Each version is a file of its own: another name would stay with the one that it was made for. Nothing: neither name is a checkpoint's.
std::optional<int> link_checkpoint(int directory, const char* path, int to_directory, const char* to) {
  const SeenAt seen = describe_checkpoint(directory, path, false);
  struct stat state;
  const bool is_there = !seen.natively || (path && holdfast::raw::fstatat(directory, path, &state, AT_SYMLINK_NOFOLLOW) == 0);
  const bool becomes_one = is_there && checkpoint_at(to_directory, to, false);
  if (seen.natively && !becomes_one) return {};
  if (!seen.natively && seen.path.empty()) return -1;
  if (becomes_one && why_name_is_taken(to_directory, to) == EEXIST) return errno = EEXIST, -1;
  if (becomes_one) complain(to, "is a checkpoint's, and gets no second name of a file; give it this name by a rename");
  return errno = EPERM, -1;
}

// A second name would be a copy of what stands at the path and fall behind: as on file systems that have none.
template <class Native>
int link_any(int directory, const char* path, int to_directory, const char* to, Native native) {
  return observed_name(Counter::others, directory, path, [=] {
    if (inside > 0) return native();
    if (const auto refused = link_checkpoint(directory, path, to_directory, to)) return *refused;
    if (is_protected(directory, path, false)) return errno = EPERM, -1;
    const int result = as_one(holdfast::file::Call::link, to_directory, to, path ? full_path(directory, path) : "", EEXIST, native);
    if (result == 0 && is_named(full_path(to_directory, to)))
      complain(to, "is a second name of a plain file, which stays plain; give it this name by a rename, or run: holdfast import " +
                       holdfast::shell_word(to));
    return result;
  });
}

// The kernel sets attributes of what may be written, and nobody may write to a stub. For this one call it has the file's own permissions.
template <class Native>
int change_attribute_of_stub(const char* path, Native native) {
  const int result = native();
  mode_t mode = 0;
  struct stat state;
  if (result == 0 || errno != EACCES || is_null(path) || !is_stub_at(AT_FDCWD, path, &mode)) return result;
  if (holdfast::raw::fstatat(AT_FDCWD, path, &state, 0) != 0 || real().chmod(path, mode) != 0) return errno = EACCES, -1;
  const int again = native(), error = errno;
  (void)real().chmod(path, state.st_mode & 07777);
  return errno = error, again;
}
// `native(path)`.
template <class Native>
int change_attribute(const char* path, bool follow, const Change& change, Native native) {
  return change_entry(AT_FDCWD, path, follow, change, [=](int, const char* at) { return change_attribute_of_stub(at, [=] { return native(at); }); });
}

// What is said about a file's use: nothing, to one that is served by us.
template <class Native>
auto advise(int fd, Native native) -> decltype(native()) {
  return observed(fd, {Counter::others}, [=] { return find(fd) ? decltype(native())(0) : native(); });
}
template <class Native>
int advise_range(int fd, int64_t bytes, int advice, Native native) {
  const bool known = bytes >= 0 && advice >= POSIX_FADV_NORMAL && advice <= POSIX_FADV_NOREUSE;
  return observed(fd, {Counter::others}, [=] { return !find(fd) ? native() : known ? 0 : EINVAL; });
}

// Whether a call that does not follow links means the file all the same: to programs a link of ours is the file.
bool means_the_file(int directory, const char* path) { return inside == 0 && !is_null(path) && is_link_of_ours(directory, path); }
int flags_for(int directory, const char* path, int flags) {
  return (flags & AT_SYMLINK_NOFOLLOW) && means_the_file(directory, path) ? flags & ~AT_SYMLINK_NOFOLLOW : flags;
}

}  // namespace

HF_DOOR int chmod(const char* path, mode_t mode) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return change_entry(AT_FDCWD, path, true, mode, {"chmod", mode}, [=](int, const char* at) { return real().chmod(at, mode); });
}
HF_DOOR int fchmod(int fd, mode_t mode) noexcept {
  return change_open(
      fd, mode, {"fchmod", mode}, [=](const char* at) { return real().chmod(at, mode); }, [=] { return real().fchmod(fd, mode); });
}
HF_DOOR int fchmodat(int directory, const char* path, mode_t mode, int asked) noexcept {
  HF_ALIKE(directory, path);
  const int flags = flags_for(directory, path, asked);
  const bool known = (flags & ~AT_SYMLINK_NOFOLLOW) == 0;  // else the kernel answers
  return change_entry(directory, path, !(flags & AT_SYMLINK_NOFOLLOW), known ? NewMode(mode) : std::nullopt, {"fchmodat", mode, uint64_t(flags)},
                      [=](int in, const char* at) { return real().fchmodat(in, at, mode, flags); });
}
HF_DOOR int chown(const char* path, uid_t owner, gid_t group) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return change_entry(AT_FDCWD, path, true, {"chown", owner, group}, [=](int, const char* at) { return real().chown(at, owner, group); });
}
HF_DOOR int lchown(const char* path, uid_t owner, gid_t group) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  if (means_the_file(AT_FDCWD, path)) return chown(path, owner, group);
  return change_entry(AT_FDCWD, path, false, {"lchown", owner, group}, [=](int, const char* at) { return real().lchown(at, owner, group); });
}
HF_DOOR int fchown(int fd, uid_t owner, gid_t group) noexcept {
  return change_open(
      fd, {"fchown", owner, group}, [=](const char* at) { return real().chown(at, owner, group); }, [=] { return real().fchown(fd, owner, group); });
}
HF_DOOR int fchownat(int directory, const char* path, uid_t owner, gid_t group, int asked) noexcept {
  HF_ALIKE(directory, path);
  const int flags = flags_for(directory, path, asked);
  if ((flags & AT_EMPTY_PATH) && !is_null(path) && !*path && find_or_adopt(directory)) return fchown(directory, owner, group);
  return change_entry(directory, path, !(flags & AT_SYMLINK_NOFOLLOW), {"fchownat", owner, group},
                      [=](int in, const char* at) { return real().fchownat(in, at, owner, group, flags); });
}
HF_DOOR int utime(const char* path, const struct utimbuf* times) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return change_entry(AT_FDCWD, path, true, times_of("utime", times, sizeof *times), [=](int, const char* at) { return real().utime(at, times); });
}
HF_DOOR int utimes(const char* path, const struct timeval times[2]) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return change_entry(AT_FDCWD, path, true, times_of("utimes", times, 2 * sizeof *times),
                      [=](int, const char* at) { return real().utimes(at, times); });
}
HF_DOOR int lutimes(const char* path, const struct timeval times[2]) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  if (means_the_file(AT_FDCWD, path)) return utimes(path, times);
  return change_entry(AT_FDCWD, path, false, times_of("lutimes", times, 2 * sizeof *times),
                      [=](int, const char* at) { return real().lutimes(at, times); });
}
HF_DOOR int futimes(int fd, const struct timeval times[2]) noexcept {
  return change_open(
      fd, times_of("futimes", times, 2 * sizeof *times), [=](const char* at) { return real().utimes(at, times); },
      [=] { return real().futimes(fd, times); });
}
HF_DOOR int futimesat(int directory, const char* path, const struct timeval times[2]) noexcept {
  HF_ALIKE(directory, path);
  return change_entry(directory, path, true, times_of("futimesat", times, 2 * sizeof *times),
                      [=](int in, const char* at) { return real().futimesat(in, at, times); });
}
HF_DOOR int futimens(int fd, const struct timespec times[2]) noexcept {
  return change_open(
      fd, times_of("futimens", times), [=](const char* at) { return real().utimensat(AT_FDCWD, at, times, 0); },
      [=] { return real().futimens(fd, times); });
}
HF_DOOR int utimensat(int directory, const char* path, const struct timespec times[2], int asked) noexcept {
  HF_ALIKE(directory, path);
  if (is_null(path)) return futimens(directory, times);  // Linux's own way to say so
  const int flags = flags_for(directory, path, asked);
  return change_entry(directory, path, !(flags & AT_SYMLINK_NOFOLLOW), times_of("utimensat", times),
                      [=](int in, const char* at) { return real().utimensat(in, at, times, flags); });
}
HF_DOOR ssize_t getxattr(const char* path, const char* name, void* into, size_t bytes) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return ask_path(path, true, [=](const char* at) { return real().getxattr(at, name, into, bytes); });
}
HF_DOOR ssize_t listxattr(const char* path, char* into, size_t bytes) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return ask_path(path, true, [=](const char* at) { return real().listxattr(at, into, bytes); });
}
HF_DOOR ssize_t lgetxattr(const char* path, const char* name, void* into, size_t bytes) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  if (means_the_file(AT_FDCWD, path)) return getxattr(path, name, into, bytes);
  return ask_path(path, false, [=](const char* at) { return real().lgetxattr(at, name, into, bytes); });
}
HF_DOOR ssize_t llistxattr(const char* path, char* into, size_t bytes) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  if (means_the_file(AT_FDCWD, path)) return listxattr(path, into, bytes);
  return ask_path(path, false, [=](const char* at) { return real().llistxattr(at, into, bytes); });
}
HF_DOOR int setxattr(const char* path, const char* name, const void* from, size_t bytes, int flags) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return change_attribute(path, true, attribute_of("setxattr", name, from, bytes, flags),
                          [=](const char* at) { return real().setxattr(at, name, from, bytes, flags); });
}
HF_DOOR int removexattr(const char* path, const char* name) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return change_attribute(path, true, attribute_of("removexattr", name), [=](const char* at) { return real().removexattr(at, name); });
}
HF_DOOR int lsetxattr(const char* path, const char* name, const void* from, size_t bytes, int flags) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  if (means_the_file(AT_FDCWD, path)) return setxattr(path, name, from, bytes, flags);
  return change_attribute(path, false, attribute_of("lsetxattr", name, from, bytes, flags),
                          [=](const char* at) { return real().lsetxattr(at, name, from, bytes, flags); });
}
HF_DOOR int lremovexattr(const char* path, const char* name) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  if (means_the_file(AT_FDCWD, path)) return removexattr(path, name);
  return change_attribute(path, false, attribute_of("lremovexattr", name), [=](const char* at) { return real().lremovexattr(at, name); });
}
HF_DOOR ssize_t fgetxattr(int fd, const char* name, void* into, size_t bytes) noexcept {
  return ask_entry(fd, [=](const char* at) { return at ? getxattr(at, name, into, bytes) : real().fgetxattr(fd, name, into, bytes); });
}
HF_DOOR ssize_t flistxattr(int fd, char* into, size_t bytes) noexcept {
  return ask_entry(fd, [=](const char* at) { return at ? listxattr(at, into, bytes) : real().flistxattr(fd, into, bytes); });
}
HF_DOOR int fsetxattr(int fd, const char* name, const void* from, size_t bytes, int flags) noexcept {
  return change_open(
      fd, attribute_of("fsetxattr", name, from, bytes, flags), [=](const char* at) { return setxattr(at, name, from, bytes, flags); },
      [=] { return real().fsetxattr(fd, name, from, bytes, flags); });
}
HF_DOOR int fremovexattr(int fd, const char* name) noexcept {
  return change_open(
      fd, attribute_of("fremovexattr", name), [=](const char* at) { return removexattr(at, name); }, [=] { return real().fremovexattr(fd, name); });
}
HF_DOOR int statfs(const char* path, struct statfs* into) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return ask_space(HF_CALLER, path, into, [=](const char* at) { return real().statfs(at, into); });
}
HF_DOOR int statfs64(const char* path, struct statfs64* into) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return ask_space(HF_CALLER, path, into, [=](const char* at) { return real().statfs64(at, into); });
}
HF_DOOR int statvfs(const char* path, struct statvfs* into) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return ask_space(HF_CALLER, path, into, [=](const char* at) { return real().statvfs(at, into); });
}
HF_DOOR int statvfs64(const char* path, struct statvfs64* into) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return ask_space(HF_CALLER, path, into, [=](const char* at) { return real().statvfs64(at, into); });
}
HF_DOOR long pathconf(const char* path, int name) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return ask_path(path, true, [=](const char* at) { return real().pathconf(at, name); });
}
HF_DOOR int fstatfs(int fd, struct statfs* into) noexcept {
  return ask_space(HF_CALLER, fd, into, [=](const char* at) { return at ? statfs(at, into) : real().fstatfs(fd, into); });
}
HF_DOOR int fstatfs64(int fd, struct statfs64* into) noexcept {
  return ask_space(HF_CALLER, fd, into, [=](const char* at) { return at ? statfs64(at, into) : real().fstatfs64(fd, into); });
}
HF_DOOR int fstatvfs(int fd, struct statvfs* into) noexcept {
  return ask_space(HF_CALLER, fd, into, [=](const char* at) { return at ? statvfs(at, into) : real().fstatvfs(fd, into); });
}
HF_DOOR int fstatvfs64(int fd, struct statvfs64* into) noexcept {
  return ask_space(HF_CALLER, fd, into, [=](const char* at) { return at ? statvfs64(at, into) : real().fstatvfs64(fd, into); });
}

// The doors whose chain stands in gen/libc_functions.txt.
#include "attribute_doors.inc"
