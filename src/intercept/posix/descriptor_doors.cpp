// Doors that take a descriptor: moving bytes, seeking, sizes, locks, duplicating, closing.
#include <stdarg.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "intercept/posix/aborts.hpp"
#include "intercept/posix/as_one.hpp"
#include "intercept/posix/checkpoints.hpp"
#include "intercept/posix/copies.hpp"
#include "intercept/posix/decided.hpp"
#include "intercept/posix/door.hpp"
#include "intercept/posix/locks_as_one.hpp"
#include "intercept/posix/settings.hpp"
#include "intercept/posix/stand_in.hpp"

namespace {

using namespace holdfast::intercept::posix;
using holdfast::Kind;
using holdfast::Result;
using holdfast::Status;
namespace raw = holdfast::raw;

using Moved = Result<int64_t>;

iovec piece(const void* bytes, size_t count) { return {const_cast<void*>(bytes), count}; }
std::span<const iovec> pieces(const iovec* list, int count) { return {list, size_t(std::max(count, 0))}; }
size_t bytes_in(const iovec* list, int count) {
  size_t bytes = 0;
  for (const iovec& one : pieces(list, count)) bytes += one.iov_len;
  return bytes;
}
Status mistake(int error) { return Status(error == EOPNOTSUPP ? Kind::unsupported : Kind::invalid, "", error); }

constexpr int known_flags = RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND;

Moved read_one(Description& file, void* into, size_t bytes) {
  const iovec all = piece(into, bytes);
  return file.read({&all, 1});
}
Moved read_one_at(Description& file, void* into, size_t bytes, off_t offset) {
  const iovec all = piece(into, bytes);
  return file.read_at(offset, {&all, 1});
}
Moved write_one(Description& file, const void* from, size_t bytes) {
  const iovec all = piece(from, bytes);
  return file.write({&all, 1});
}
Moved write_one_at(Description& file, const void* from, size_t bytes, off_t offset) {
  const iovec all = piece(from, bytes);
  return file.write_at(offset, {&all, 1});
}
Moved read_pieces(Description& file, const iovec* into, int count) { return count < 0 ? Moved(mistake(EINVAL)) : file.read(pieces(into, count)); }
Moved read_pieces_at(Description& file, const iovec* into, int count, off_t offset) {
  return count < 0 ? Moved(mistake(EINVAL)) : file.read_at(offset, pieces(into, count));
}
Moved write_pieces(Description& file, const iovec* from, int count) { return count < 0 ? Moved(mistake(EINVAL)) : file.write(pieces(from, count)); }
Moved write_pieces_at(Description& file, const iovec* from, int count, off_t offset, int flags = 0) {
  return count < 0 ? Moved(mistake(EINVAL)) : file.write_at(offset, pieces(from, count), flags);
}
// The calls with flags: an offset of -1 means the descriptor's own position.
Moved read_pieces_2(Description& file, const iovec* into, int count, off_t offset, int flags) {
  if (flags & ~known_flags || flags & RWF_APPEND) return mistake(EOPNOTSUPP);
  return offset == -1 ? read_pieces(file, into, count) : read_pieces_at(file, into, count, offset);
}
Moved write_pieces_2(Description& file, const iovec* from, int count, off_t offset, int flags) {
  if (flags & ~known_flags) return mistake(EOPNOTSUPP);
  if (count < 0) return mistake(EINVAL);
  return offset == -1 ? file.write(pieces(from, count), flags) : write_pieces_at(file, from, count, offset, flags);
}

Status sync_range(Description& file, off64_t offset, off64_t bytes, unsigned flags) {
  constexpr unsigned known = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  off64_t end = 0;
  if ((flags & ~known) || offset < 0 || bytes < 0 || __builtin_add_overflow(offset, bytes, &end)) return mistake(EINVAL);
  return file.sync();
}

// The gaps between Holdfast's own descriptors. Allocates nothing: also called between fork and exec.
int close_all_but_own(unsigned first, unsigned last, int flags) {
  for (unsigned fd = first; fd <= last && fd < unsigned(raw::watched_descriptors); ++fd) {
    if (!raw::is_own(fd)) continue;
    if (fd > first && real().close_range(first, fd - 1, flags) != 0) return -1;
    first = fd + 1;
  }
  return first <= last ? real().close_range(first, last, flags) : 0;
}

int duplicated(int from, int to) {
  if (to < 0) return to;
  observe_duplicate(from, to);
  if (from != to) note_native_stream(to, false);
  if (from != to && inside == 0 && holdfast::redundant::Replica::now()) [[unlikely]]
    name_duplicate(from, to);
  if (from != to && writes_checkpoint(from)) [[unlikely]]
    checkpoint_duplicated(from, to);
  auto description = find(from);
  if (!description || from == to || !of_this_process()) return to;
  set(to, description);
  if (stands_in(from)) share_stand_in(from, to);
  else stand_in_where_needed(to, description);
  return to;
}

// A second number in the place of whatever `to` was.
template <class Native>
int duplicate_over(int from, int to, Native native) {
  if (raw::is_own(unsigned(to))) return errno = EBADF, -1;  // as a number beyond the limit
  return observed(from, {Counter::others}, [=] {
    // What came through exec stays unknown until it is used; standard output is used by calls of the C library that nobody sees.
    if (to >= 0 && to <= last_standard_number && of_this_process()) (void)find_or_adopt(from);
    const int result = native();
    if (result < 0 || from == to) return result;
    if (writes_checkpoint(to)) checkpoint_closed(to);
    (void)forget(to);
    return duplicated(from, result);
  });
}

// The kernel's own mapping, of a file before which nothing is kept any more.
void* map_plain(Description& file, void* address, size_t length, int protection, int flags, off_t offset) {
  if ((protection & PROT_WRITE) && (flags & MAP_TYPE) != MAP_PRIVATE)
    refuse_while_behind([&] { return "it maps " + file.path() + " to write, and what is written so is not written down"; });
  const OurCode ours_now;
  if (!file.reads() || ((protection & PROT_WRITE) && (flags & MAP_TYPE) != MAP_PRIVATE && !file.writes())) return errno = EACCES, MAP_FAILED;
  const Status through = file.write_through();
  if (!through.ok()) return (void)fail(file, through), MAP_FAILED;
  const auto native = file.native_descriptor();
  if (!native) return (void)fail(file, native.status()), MAP_FAILED;
  if ((flags & MAP_TYPE) != MAP_PRIVATE) ProcessFile::note_mapped(file.file_id());
  return real().mmap(address, length, protection, flags, *native, offset);
}

// Private pages with the content of now; what others write later does not show, which POSIX leaves open.
void* map_content(Description& file, void* address, size_t length, int protection, int flags, off_t offset) {
  if (file.is_plain()) return map_plain(file, address, length, protection, flags, offset);
  const OurCode ours_now;
  const int type = flags & MAP_TYPE;
  if (type != MAP_PRIVATE && type != MAP_SHARED && type != MAP_SHARED_VALIDATE) return errno = EINVAL, MAP_FAILED;
  if (!file.reads()) return errno = EACCES, MAP_FAILED;
  if ((protection & PROT_WRITE) && (flags & MAP_TYPE) != MAP_PRIVATE) {
    if (file.writes())
      complain(file.path(),
               "a protected file cannot be mapped for shared writing; write it with write or pwrite, or map a plain "
               "copy: holdfast export");
    return errno = EACCES, MAP_FAILED;
  }
  if (offset < 0 || offset % sysconf(_SC_PAGESIZE) != 0) return errno = EINVAL, MAP_FAILED;
  const int kind = (flags & ~MAP_TYPE) | MAP_PRIVATE | MAP_ANONYMOUS;
  void* pages = real().mmap(address, length, PROT_READ | PROT_WRITE, kind, -1, 0);
  if (pages == MAP_FAILED) return pages;
  for (size_t done = 0; done < length;) {
    const Moved got = read_one_at(file, static_cast<char*>(pages) + done, length - done, offset + off_t(done));
    if (!got) {
      munmap(pages, length);
      return (void)fail(file, got.status()), MAP_FAILED;
    }
    if (*got == 0) break;
    done += size_t(*got);
  }
  if (protection != (PROT_READ | PROT_WRITE)) mprotect(pages, length, protection);
  return pages;
}

// An empty file that the policy names stays plain for whoever has it mapped.
void note_native_mapping(int fd, int flags) {
  const OurCode ours_now;
  struct stat state;
  if ((flags & MAP_TYPE) == MAP_PRIVATE || !settings().protects() || settings().path_globs.empty()) return;
  if (raw::fstat(fd, &state) != 0 || !S_ISREG(state.st_mode) || state.st_size > 0) return;
  ProcessFile::note_mapped(ProcessFile::plain_id(state.st_dev, state.st_ino));
}

template <class Native>
void* map(void* address, size_t length, int protection, int flags, int fd, off_t offset, Native native) {
  const intptr_t at = observed(fd, {Counter::mmaps}, [=] {
    const auto file = find(fd);
    void* const pages = file ? map_content(*file, address, length, protection, flags, offset) : native();
    if (!file && pages != MAP_FAILED && inside == 0) note_native_mapping(fd, flags);
    return reinterpret_cast<intptr_t>(pages);
  });
  return reinterpret_cast<void*>(at);  // MAP_FAILED is -1
}

// What a descriptor of a regular file that others may have open answers, where the kernel has none of it.
int control_as_regular(Description& file, int command, void* argument, int (*native)(int, int, ...)) {
  if (file.is_plain()) {
    const OurCode ours_now;
    const auto own = file.native_descriptor();
    return own ? native(*own, command, argument) : fail(file, own.status());
  }
  switch (command) {
    case F_GETOWN:
    case F_SETOWN:
    case F_GETSIG:
    case F_SETSIG: return 0;
    case F_GETLEASE: return F_UNLCK;
    case F_SETLEASE: return errno = EAGAIN, -1;
    default: return errno = EINVAL, -1;
  }
}

// O_PATH descriptors answer few commands of fcntl; ours answers all.
int control_served(int fd, int command, void* argument, int (*native)(int, int, ...)) {
  switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC: return duplicated(fd, native(fd, command, argument));
    case F_GETFD:
    case F_SETFD: return native(fd, command, argument);
    default: break;
  }
  auto file = find(fd);
  if (!file) {
    const int result = native(fd, command, argument);
    const bool path_only = command == F_GETFL && result >= 0 && (result & O_PATH);
    if (!path_only && (result != -1 || errno != EBADF)) return result;
    file = adopt(fd);
    if (!file) return result;
  }
  const int intent = int(reinterpret_cast<intptr_t>(argument));
  switch (command) {
    case F_GETFL: return file->flags() | O_LARGEFILE;
    case F_SETFL: return file->set_flags(intent), 0;
    default: return control_as_regular(*file, command, argument, native);
  }
}

int control(int fd, int command, void* argument, int (*native)(int, int, ...), const void* caller) {
  if (is_of_locks(command)) return lock_record(fd, command, static_cast<struct flock*>(argument), native, caller);
  const int result = observed(fd, {Counter::others}, [=] { return control_served(fd, command, argument, native); });
  if (command == F_SETFL && result == 0) observe_flags(fd, int(reinterpret_cast<intptr_t>(argument)));
  return result;
}

template <class Native>
int size_to(int fd, off_t length, Native native) {
  const int error = errno;
  const int result = either(
      fd, {Counter::resizes}, [=](Description& file) { return file.truncate(length); }, native);
  if (result == 0 && writes_checkpoint(fd)) [[unlikely]]
    checkpoint_truncated(fd, length);
  if (result == 0) errno = error;
  return result;
}

// posix_fallocate returns its error.
template <class Native>
int reserve(int fd, off_t offset, off_t length, Native native) {
  int error = 0;
  (void)observed(fd, {Counter::resizes}, [&] {
    if (auto file = find(fd)) {
      const OurCode ours_now;
      const Status status = file->allocate(0, offset, length);
      if (!status.ok() && !status.sentence().empty()) complain(file->path(), status.sentence());
      error = status.to_errno();
    } else {
      error = native();
      if (may_be_alone(error)) errno = error, (void)failure_of_all(fd, int(Counter::resizes), offset, -1), error = errno;
    }
    return error == 0 ? 0 : -1;
  });
  return error;
}

template <class Native>
int print(int fd, const char* format, va_list arguments, Native native) {
  if (!find_or_adopt(fd))
    return observed(fd, writes(), [&] {
      const int put = native();
      return put < 0 && may_be_alone(errno) ? int(failure_of_all(fd, int(Counter::writes_independent), at_position, -1)) : put;
    });
  char* text = nullptr;
  const int bytes = vasprintf(&text, format, arguments);
  if (bytes < 0) return bytes;
  const ssize_t put = write(fd, text, size_t(bytes));
  free(text);
  return put < 0 ? -1 : bytes;
}

}  // namespace

HF_DOOR ssize_t write(int fd, const void* from, size_t bytes) {
  if (fd == launchers_number) [[unlikely]]
    is_told_to_launcher(from, bytes);
  return either_or_end(
      fd, writes(), [=](Description& file) { return write_one(file, from, bytes); },
      [=] { return written_by_all(fd, at_position, bytes, real().write(fd, from, bytes)); });
}
HF_DOOR int dprintf(int fd, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int bytes = print(fd, format, arguments, [&] { return real().vdprintf(fd, format, arguments); });
  va_end(arguments);
  return bytes;
}
HF_DOOR int vdprintf(int fd, const char* format, va_list arguments) {
  return print(fd, format, arguments, [&] { return real().vdprintf(fd, format, arguments); });
}
HF_DOOR int __dprintf_chk(int fd, int level, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int bytes = print(fd, format, arguments, [&] { return real().__vdprintf_chk(fd, level, format, arguments); });
  va_end(arguments);
  return bytes;
}
HF_DOOR int __vdprintf_chk(int fd, int level, const char* format, va_list arguments) {
  return print(fd, format, arguments, [&] { return real().__vdprintf_chk(fd, level, format, arguments); });
}

// ---- numbers

HF_DOOR int close(int fd) {
  if (raw::is_own(unsigned(fd))) return errno = EBADF, -1;  // the program never got it
  return observed_close(fd, [=] {
    const Status status = forget(fd);
    ClosingCheckpoint checkpoint(fd);
    const int result = checkpoint.ends(real().close(fd));
    if (any_held) [[unlikely]]
      forget_locks_of_closed();
    return status.ok() || result != 0 ? result : (errno = status.to_errno(), -1);
  });
}
HF_DOOR int close_range(unsigned first, unsigned last, int flags) noexcept {
  constexpr int only_marks = 4;  // CLOSE_RANGE_CLOEXEC
  if (flags & only_marks) return real().close_range(first, last, flags);
  observe_closing(first, last);
  forget_range(first, last);
  const ClosingCheckpoints checkpoints(first, last);
  return close_all_but_own(first, last, flags);
}
HF_DOOR void closefrom(int first) noexcept {
  observe_closing(unsigned(std::max(first, 0)), ~0u);
  forget_range(unsigned(std::max(first, 0)), ~0u);
  const ClosingCheckpoints checkpoints(unsigned(std::max(first, 0)), ~0u);
  (void)close_all_but_own(unsigned(std::max(first, 0)), ~0u, 0);
}
HF_DOOR int dup(int fd) noexcept {
  return observed(fd, {Counter::others}, [=] { return duplicated(fd, real().dup(fd)); });
}
HF_DOOR int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return control(fd, command, argument, real().fcntl, HF_CALLER);
}
HF_DOOR int fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return control(fd, command, argument, real().fcntl64, HF_CALLER);
}

HF_DOOR void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) noexcept {
  const auto native = [=] { return real().mmap(address, length, protection, flags, fd, offset); };
  return fd < 0 || (flags & MAP_ANONYMOUS) ? native() : map(address, length, protection, flags, fd, offset, native);
}
HF_DOOR void* mmap64(void* address, size_t length, int protection, int flags, int fd, off64_t offset) noexcept {
  const auto native = [=] { return real().mmap64(address, length, protection, flags, fd, offset); };
  return fd < 0 || (flags & MAP_ANONYMOUS) ? native() : map(address, length, protection, flags, fd, offset, native);
}

// The doors whose chain stands in gen/libc_functions.txt.
#include "descriptor_doors.inc"
