// Doors that open: open and its family.
#include <cstdarg>
#include <cstring>
#include <optional>

#include "base/in_mpi.hpp"
#include "base/own_numbers.hpp"
#include "catalog/catalog.hpp"
#include "catalog/user_files.hpp"
#include "file/coordinated/names.hpp"
#include "file/open_as_replica.hpp"
#include "intercept/posix/alike.hpp"
#include "intercept/posix/as_one.hpp"
#include "intercept/posix/checkpoints.hpp"
#include "intercept/posix/children.hpp"
#include "intercept/posix/copies.hpp"
#include "intercept/posix/decided.hpp"
#include "intercept/posix/descriptor_names.hpp"
#include "intercept/posix/listings.hpp"
#include "intercept/posix/observe.hpp"
#include "intercept/posix/open.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/settings.hpp"
#include "target/directory_stripes.hpp"
#include "tree/decide.hpp"

namespace holdfast::intercept::posix {

namespace {

bool has_mode(int flags) { return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE; }
bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }
bool changes(int flags) { return writes(flags) || (flags & (O_TRUNC | O_CREAT)); }
// Not for the entry or a directory. A path that ends in a slash is a directory's, or the kernel refuses it: EISDIR, ENOTDIR.
bool asks_for_content(const char* path, int flags) { return !(flags & (O_PATH | O_DIRECTORY)) && !std::string_view(path).ends_with('/'); }

int failed(const std::string& path, const Status& status) {
  if (status.kind() != Kind::not_found && !status.sentence().empty()) complain(path, status.sentence());
  return errno = status.to_errno(), -1;
}

uint64_t device_of(int directory, const char* path) {
  struct stat state;
  if (raw::fstatat(directory, path, &state, 0) == 0) return state.st_dev;
  const std::string parent = catalog::parent_of(catalog::absolute_path(full_path(directory, path)));
  return raw::fstatat(AT_FDCWD, parent.c_str(), &state, 0) == 0 ? state.st_dev : 0;
}

bool is_buffered(const std::string& full) {
  const OurCode ours_now;
  return tree::is_buffered(settings(), full, tree::plain_calls);
}
// By name, or because this process has it open so by another name.
bool is_to_be_buffered(int fd, int directory, const char* path) {
  struct stat state;
  if (!ProcessFile::any_plain()) return is_buffered(full_path(directory, path));
  if (raw::fstat(fd, &state) != 0) return false;
  return ProcessFile::find(ProcessFile::plain_id(state.st_dev, state.st_ino)) != nullptr || is_buffered(full_path(directory, path));
}

// The file gets the number; what O_TRUNC asks for is done before.
int give_number(NewNumber& number, Result<file::Found> found, const std::string& full, int flags, uint64_t device) {
  if (!found) return failed(full, found.status());
  OpeningServed counted(full);
  const layout::Geometry& geometry = found->located.manifest.geometry;
  counted.is(geometry.scheme.name(), geometry.unit_bytes);
  const bool fresh = found->fresh;
  std::optional<layout::Manifest> mirrored;
  if (writes(flags) && geometry.scheme.k == 1) mirrored = found->located.manifest;
  auto file = ProcessFile::open(std::move(*found), {.writes = writes(flags)}, settings());
  if (!file) return failed(full, file.status());
  if ((flags & O_TRUNC) && !fresh) {
    if (const Status cut = (*file)->set_size(0); !cut.ok()) {
      (void)(*file)->leave(writes(flags));
      return failed(full, cut);
    }
  }
  const int fd = number.give(*file, device);
  if (fd < 0) (void)(*file)->leave(writes(flags));
  else if (mirrored) serve_copies(*mirrored);
  return fd;
}

tree::Standing standing_of(const struct stat& state) {
  if (!S_ISREG(state.st_mode)) return {catalog::PathKind::other};
  if (state.st_size > 0) return {catalog::PathKind::plain};
  if (state.st_nlink != 1) return {.kind = catalog::PathKind::empty, .has_second_names = true};
  return {.kind = catalog::PathKind::empty, .is_mapped = ProcessFile::was_mapped(ProcessFile::plain_id(state.st_dev, state.st_ino))};
}

// Who makes it is its first opener. Replicas open what they have made one after another.
bool writes_alone(int flags) { return writes(flags) && !redundant::Replica::now(); }

// In a redundant job it is made once.
Result<file::Found> find_to_use(const std::string& full, const file::How& how) {
  redundant::Replica* const replica = redundant::Replica::now();
  return replica ? file::find_as_replica(full, how, settings(), *replica) : file::find(full, how, settings());
}

void remove_if_empty(int directory, const char* path) {
  struct stat state;
  if (raw::fstatat(directory, path, &state, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(state.st_mode) && state.st_size == 0)
    raw::unlinkat(directory, path, 0);
}

// To a whole copy of a mirrored file. The kernel compares no checksums of it, and has no other one where its disk fails or hangs.
bool leads_to_copy(int directory, const char* path) {
  const KeepErrno keep;
  char begin;
  return path && raw::readlinkat(directory, path, &begin, sizeof begin) > 0 && is_protected(directory, path);
}

int open_by_way(tree::Way way, int directory, const char* path, int flags);

// The program's own open to write has made the file, or found it there: with its permissions, and alone if it asked for that.
int protect_opened(int fd, int directory, const char* path, int flags) {
  const OurCode ours_now;
  struct stat state;
  const std::string full = full_path(directory, path);
  if (!tree::is_named(settings(), full, tree::plain_calls) || raw::fstat(fd, &state) != 0) return fd;
  if (is_stub(fd)) {  // somebody has put a protected file there since we looked
    real().close(fd);
    return open_by_way(tree::Way::find, directory, path, flags);
  }
  const tree::Decision decision = tree::decide_named(full, standing_of(state), {.writes = true}, settings(), tree::plain_calls);
  if (!decision.remark.empty()) complain(full, decision.remark);
  if (decision.way != tree::Way::make) return fd;
  NewNumber number(flags, fd);
  if (number.reserve() < 0) return -1;
  auto found = find_to_use(full, {.write = writes_alone(flags), .make = true, .mode = state.st_mode & 0777});
  const int result = give_number(number, std::move(found), full, flags, state.st_dev);
  if (result < 0 && (flags & O_CREAT)) {
    const int error = errno;
    remove_if_empty(directory, path);
    errno = error;
  }
  return result;
}

// `fd` becomes a descriptor of the plain file with buffers before it; stays what it is where that cannot be.
int buffer_opened(int fd, int directory, const char* path, int flags) {
  const OurCode ours_now;
  struct stat state;
  if (raw::fstat(fd, &state) != 0 || !S_ISREG(state.st_mode)) return fd;
  raw::Fd native(raw::duplicate_out_of_the_way(fd));
  if (!native) return fd;
  OpeningServed counted(full_path(directory, path));
  counted.is("", uint64_t(state.st_blksize));
  auto file = ProcessFile::open_plain(std::move(native), catalog::absolute_path(full_path(directory, path)), {.writes = writes(flags)}, settings());
  if (!file) return fd;
  if (flags & O_DIRECT) (void)(*file)->write_through();  // what fails is told to the descriptors that wrote it
  NewNumber number(flags, fd);
  const bool cut = !(flags & O_TRUNC) || (*file)->set_size(0).ok();  // the kernel has, but not what was still in buffers
  const int result = cut && number.reserve() == 0 ? number.give(*file, state.st_dev) : -1;
  if (result < 0) (void)(*file)->leave(writes(flags));
  return result;
}

// How a protected file is to be opened.
tree::Way way_to_protected(int directory, const char* path, int flags) {
  const OurCode ours_now;
  const tree::Opening opening{.writes = writes(flags), .creates = (flags & O_CREAT) != 0, .exclusive = (flags & O_EXCL) != 0};
  return tree::decide(full_path(directory, path), {catalog::PathKind::protected_file}, opening, settings(), tree::plain_calls).way;
}

// Gives it a descriptor. -1 and errno, with one line on standard error.
int open_by_way(tree::Way way, int directory, const char* path, int flags) {
  const OurCode ours_now;
  const std::string full = full_path(directory, path);
  NewNumber number(flags);
  if (number.reserve() < 0) return -1;
  auto found = find_to_use(full, {.write = way == tree::Way::make && writes_alone(flags), .make = way == tree::Way::make});
  const bool edited = !found && found.status().kind() == Kind::stale;
  if (edited && !changes(flags) && leads_to_copy(directory, path)) return real().openat(directory, path, flags);  // readers get what is there
  return give_number(number, std::move(found), full, flags, device_of(directory, path));
}

// What the replicas have opened together takes its place among the protected files.
int protect_as_replica(const std::string& full, int flags, const struct stat& state) {
  NewNumber number(flags);
  if (number.reserve() < 0) return -1;
  auto found = find_to_use(full, {.make = true, .mode = state.st_mode & 0777});
  const int result = give_number(number, std::move(found), full, flags, state.st_dev);
  const int error = errno;
  const auto remove = [&](bool) { return remove_if_empty(AT_FDCWD, full.c_str()), file::Outcome(); };
  if (result < 0 && (flags & O_CREAT)) (void)file::once(*redundant::Replica::now(), file::Call::unlink, full, "empty", remove);
  errno = error;
  return result;
}

// Each replica would write there what one is to write, and get a part of what comes.
bool is_pipe(const std::string& full) {
  struct stat state;
  return raw::fstatat(AT_FDCWD, full.c_str(), &state, 0) == 0 && S_ISFIFO(state.st_mode);
}
int refuse_pipe(const std::string& full) {
  complain(full, "is a named pipe, which several replicas cannot use as one; let the program use a file, or run it without --replicas");
  return errno = EOPNOTSUPP, -1;
}

// Made, cut or opened once by the replica that leads; then it is every replica's as a plain file with buffers is.
int open_as_replica(int directory, const char* path, int flags, mode_t mode) {
  const OurCode ours_now;
  const std::string full = catalog::absolute_path(full_path(directory, path));
  if (is_pipe(full)) return refuse_pipe(full);
  auto native = file::open_once(*redundant::Replica::now(), full, flags & ~O_APPEND, mode);
  if (!native) return errno = native.status().to_errno(), -1;
  struct stat state;
  if (raw::fstat(native->get(), &state) != 0) return -1;
  if (writes(flags) && tree::is_named(settings(), full, tree::plain_calls)) {
    const tree::Decision decision = tree::decide_named(full, standing_of(state), {.writes = true}, settings(), tree::plain_calls);
    if (!decision.remark.empty()) complain(full, decision.remark);
    if (decision.way == tree::Way::make) return protect_as_replica(full, flags, state);
  }
  NewNumber number(flags);
  auto file = ProcessFile::open_plain(std::move(*native), full, {.writes = writes(flags)}, settings());
  if (!file) return failed(full, file.status());
  const bool cut = !(flags & O_TRUNC) || (*file)->set_size(0).ok();
  const int result = cut && number.reserve() == 0 ? number.give(*file, state.st_dev) : -1;
  if (result < 0) (void)(*file)->leave(writes(flags));
  return result;
}

}  // namespace

// Under the policy, by name. One look at nothing but the settings where there is none.
bool is_named(const std::string& full) {
  const OurCode ours_now;
  return tree::is_named(settings(), full, tree::plain_calls);
}

bool concerns(int directory, const char* path, int flags) {
  if (!path_instead(path).empty() || leads_to_copy(directory, path)) return true;
  if (!changes(flags)) return false;
  if (is_protected(directory, path)) return true;
  const std::string full = full_path(directory, path);
  return writes(flags) && (is_named(full) || is_buffered(full) || is_coordinated(directory, path, flags) || appends_for_all(directory, path, flags));
}

bool is_coordinated(int directory, const char* path, int flags) {
  const redundant::Replica* const replica = redundant::Replica::now();
  if (is_child_of_replica.load(std::memory_order_relaxed) && inside == 0 && path && writes(flags) && !appends_for_all(directory, path, flags))
      [[unlikely]]
    tell_of_write(directory, path);
  if (!replica || in_mpi_calls > 0 || inside > 0 || !path || !asks_for_content(path, flags)) [[likely]]
    return false;
  const OurCode ours_now;
  struct stat state;
  const bool there = raw::fstatat(directory, path, &state, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) == 0;
  const bool is_pipe = there && S_ISFIFO(state.st_mode);  // which is refused
  if (there && !S_ISREG(state.st_mode) && !is_pipe) return false;
  if (there && ProcessFile::find(ProcessFile::plain_id(state.st_dev, state.st_ino))) return true;
  return (is_pipe || changes(flags)) && !is_each_replicas_own(*replica, catalog::absolute_path(full_path(directory, path)));
}

bool is_for_protection(int directory, const char* path, int flags) {
  return asks_for_content(path, flags) && (is_protected(directory, path) || (writes(flags) && is_named(full_path(directory, path))));
}

bool make_with_stripes(int directory, const char* path, int flags, mode_t mode) {
  if (!(flags & O_CREAT) || !writes(flags)) return false;
  const OurCode ours_now;
  if (!settings().striping_unit && !settings().striping_factor) return false;
  const auto wish = tree::stripes_of_plain(settings(), full_path(directory, path), tree::plain_calls);
  // It is opened to be asked for the layout, and then once more by the program.
  constexpr mode_t needed = S_IRUSR | S_IWUSR;
  return wish && (mode & needed) == needed && target::make_striped_file(directory, path, mode, *wish).has_value();
}

bool is_open_with_buffers(int directory, const char* path) {
  struct stat state;
  if (!ProcessFile::any_plain() || raw::fstatat(directory, path, &state, 0) != 0) return false;
  return ProcessFile::find(ProcessFile::plain_id(state.st_dev, state.st_ino)) != nullptr;
}

// What a program reads natively may be a copy that it writes through another descriptor.
bool is_to_be_served(int fd, int directory, const char* path) {
  return is_stub(fd) || (ProcessFile::any_written() && is_protected(directory, path)) || is_to_be_buffered(fd, directory, path);
}

}  // namespace holdfast::intercept::posix

namespace {

using namespace holdfast::intercept::posix;
namespace redundant = holdfast::redundant;
namespace tree = holdfast::tree;

int refuse_nameless(const char* path) {
  complain(path, "a file without a name (O_TMPFILE) cannot be protected, and the policy names what lies here; give it a name");
  return errno = EOPNOTSUPP, -1;
}

int open_instead(const std::string& path, int flags, mode_t mode);

bool may_be_opened(int directory, const char* path, int flags) {
  const int wanted = !writes(flags) ? R_OK : (flags & O_ACCMODE) == O_WRONLY ? W_OK : R_OK | W_OK;
  return is_allowed(directory, path, flags & O_TRUNC ? wanted | W_OK : wanted);
}

// Of an entry or a directory. A checkpoint's own file is not at its path.
template <class OpenNative>
int open_entry(int directory, const char* path, int flags, OpenNative open_native) {
  if (is_unseen_directory(directory, path)) return errno = ENOENT, -1;
  const int fd = open_native();
  if (fd >= 0 || errno != ENOENT) return fd;
  const SeenAt seen = see_checkpoint(directory, path, !(flags & O_NOFOLLOW));
  if (seen.natively) return errno = ENOENT, -1;
  return call_where_it_is(seen, directory, path, [=](const char* at) { return real().open(at, flags); });
}

// `open_native` is the door that the program called.
template <class OpenNative>
int open_this(int directory, const char* path, int flags, mode_t mode, OpenNative open_native) {
  if (inside > 0 || !path) return open_native();
  if ((flags & O_TMPFILE) == O_TMPFILE) return is_named(full_path(directory, path) + "/#nameless") ? refuse_nameless(path) : open_native();
  if (!asks_for_content(path, flags)) return open_entry(directory, path, flags, open_native);
  if (const auto served = open_checkpoint(directory, path, flags, mode)) return *served;
  if ((flags & O_NOFOLLOW) && is_link_of_the_program(directory, path)) return open_native();
  if (!(flags & O_NOFOLLOW))
    if (const std::string instead = path_instead(path); !instead.empty()) return open_instead(instead, flags, mode);
  if (leads_to_copy(directory, path) || (changes(flags) && is_protected(directory, path))) {
    const tree::Way way = way_to_protected(directory, path, flags);
    if (way == tree::Way::refuse) return errno = EEXIST, -1;
    if (!may_be_opened(directory, path, flags)) return -1;
    return open_by_way(way, directory, path, flags);
  }
  if (is_coordinated(directory, path, flags)) [[unlikely]]
    return open_as_replica(directory, path, flags, mode);
  // With stripes that the user asked for: those are settled before anybody opens a file to write.
  const bool made = make_with_stripes(directory, path, flags, mode);
  int fd = made ? real().openat(directory, path, flags & ~(O_CREAT | O_EXCL)) : open_native();
  if (fd < 0 && errno == ELOOP && (flags & O_NOFOLLOW) && is_link_of_ours(directory, path))
    fd = real().openat(directory, path, flags & ~O_NOFOLLOW);  // the file itself, to programs
  if (is_watched(fd)) (void)forget(fd);                        // closed behind our back: the number is another file's now
  note_native_stream(fd, false);
  if (fd < 0) {
    if (changes(flags)) (void)failure_of_all(directory, path, int(holdfast::file::Call::open), fd);
    const bool ours = !(flags & O_CREAT) && is_protected_after(errno, directory, path);
    return ours ? open_by_way(tree::Way::find, directory, path, flags) : -1;
  }
  if (appends_for_all(directory, path, flags) || is_to_be_buffered(fd, directory, path)) return buffer_opened(fd, directory, path, flags);
  if (writes(flags)) return protect_opened(fd, directory, path, flags);
  if (!is_to_be_served(fd, directory, path)) return fd;
  real().close(fd);
  return open_by_way(tree::Way::find, directory, path, flags);
}

// Of a file that is open here already, by the kernel's name for its descriptor: it gets another of its own.
int open_instead(const std::string& path, int flags, mode_t mode) {
  if ((flags & O_CREAT) && (flags & O_EXCL)) return errno = EEXIST, -1;
  const char* const at = path.c_str();
  return open_this(AT_FDCWD, at, flags & ~O_CREAT, mode, [=] { return real().open(at, flags & ~O_CREAT); });
}

template <class OpenNative>
int open_any(int directory, const char* path, int flags, mode_t mode, const void* caller, OpenNative open_native) {
  const auto open_now = [=] { return observed_open(directory, path, flags, [=] { return open_this(directory, path, flags, mode, open_native); }); };
  redundant::Replica* const replica = replica_for(caller);
  if (!replica || !path) [[likely]]
    return open_now();
  return open_as_told(*replica, directory, path, flags, open_now, [=] { return open_as_replica(directory, path, flags, mode); });
}

mode_t mode_from(va_list arguments, int flags) { return has_mode(flags) ? va_arg(arguments, mode_t) : 0; }

}  // namespace

#define HF_MODE                                    \
  va_list arguments;                               \
  va_start(arguments, flags);                      \
  const mode_t mode = mode_from(arguments, flags); \
  va_end(arguments)

// The doors whose chain stands in gen/libc_functions.txt.
#include "open.inc"
