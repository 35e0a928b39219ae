// Doors that take a descriptor: reading, seeking, duplicating, closing; and those that would write, which fail.
#include <stdarg.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "base/raw_syscalls.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"

namespace {

using namespace holdfast::intercept::posix;
namespace raw = holdfast::raw;

// Ours at once where the descriptor is known, else the native call, and after an EBADF of it perhaps ours after all
// (a descriptor that came through exec).
template <class Ours, class Native>
auto either(int fd, Ours ours, Native native) -> decltype(native()) {
  if (auto description = find(fd)) return ours(*description);
  auto result = native();
  if (result == decltype(result)(-1) && errno == EBADF)
    if (auto description = find_after_failure(fd)) return ours(*description);
  return result;
}

// What `pread` says for an offset that makes no sense.
template <class Offset>
ssize_t read_at(Description& file, Offset offset, void* into, size_t bytes) {
  if (offset < 0) return errno = EINVAL, -1;
  return file.read_at(uint64_t(offset), into, bytes);
}

template <class ReadOne>
ssize_t read_vectors(const iovec* into, int count, ReadOne read_one) {
  if (count < 0 || count > 1024) return errno = EINVAL, -1;
  ssize_t total = 0;
  for (int i = 0; i < count; ++i) {
    if (into[i].iov_len == 0) continue;
    const ssize_t got = read_one(into[i].iov_base, into[i].iov_len, total);
    if (got < 0) return total > 0 ? total : got;
    total += got;
    if (size_t(got) < into[i].iov_len) break;
  }
  return total;
}

ssize_t read_vectors_at(Description& file, const iovec* into, int count, off_t offset) {
  if (offset < 0) return errno = EINVAL, -1;
  return read_vectors(into, count, [&](void* base, size_t bytes, ssize_t done) {
    return file.read_at(uint64_t(offset) + uint64_t(done), base, bytes);
  });
}

// preadv2's -1 means the descriptor's own position.
ssize_t read_vectors_2(Description& file, const iovec* into, int count, off_t offset) {
  if (offset != -1) return read_vectors_at(file, into, count, offset);
  return read_vectors(into, count, [&](void* base, size_t bytes, ssize_t) { return file.read(base, bytes); });
}

// As the kernel for a descriptor that was opened to be read.
template <class Native>
auto not_for_writing(int fd, Native native) -> decltype(native()) {
  if (find(fd)) return errno = EBADF, -1;
  return native();
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
  if (auto description = find(from)) set(to, std::move(description));
  return to;
}

// A second number in the place of whatever `to` was.
template <class Native>
int duplicate_over(int from, int to, Native native) {
  const int result = native();
  if (result < 0 || from == to) return result;
  forget(to);
  return duplicated(from, result);
}

// Private pages with the content of now; what others write later does not show, which POSIX leaves open.
void* map_content(Description& file, void* address, size_t length, int protection, int flags, off_t offset) {
  if ((protection & PROT_WRITE) && (flags & MAP_TYPE) != MAP_PRIVATE) {
    refuse_writing(file.path());
    return errno = EACCES, MAP_FAILED;
  }
  if (offset < 0 || offset % sysconf(_SC_PAGESIZE) != 0) return errno = EINVAL, MAP_FAILED;
  const int kind = (flags & ~MAP_TYPE) | MAP_PRIVATE | MAP_ANONYMOUS;
  void* pages = real().mmap(address, length, PROT_READ | PROT_WRITE, kind, -1, 0);
  if (pages == MAP_FAILED) return pages;
  for (size_t done = 0; done < length;) {
    const ssize_t got = file.read_at(uint64_t(offset) + done, static_cast<char*>(pages) + done, length - done);
    if (got < 0) {
      const int error = errno;
      munmap(pages, length);
      return errno = error, MAP_FAILED;
    }
    if (got == 0) break;
    done += size_t(got);
  }
  if (protection != (PROT_READ | PROT_WRITE)) mprotect(pages, length, protection);
  return pages;
}

// O_PATH descriptors answer few commands of fcntl; a descriptor opened to be read answers all.
int control(int fd, int command, void* argument, int (*native)(int, int, ...)) {
  switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC: return duplicated(fd, native(fd, command, argument));
    default: break;
  }
  if (!find(fd)) return native(fd, command, argument);
  switch (command) {
    case F_GETFL: return O_RDONLY | O_LARGEFILE;
    case F_SETFL: return 0;
    case F_GETLK:
    case F_OFD_GETLK:
      static_cast<struct flock*>(argument)->l_type = F_UNLCK;
      return 0;
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
      // Readers among themselves; writers through MPI-IO have locks of their own.
      return static_cast<struct flock*>(argument)->l_type == F_WRLCK ? (errno = EBADF, -1) : 0;
    default: return native(fd, command, argument);
  }
}

}  // namespace

HF_DOOR ssize_t read(int fd, void* into, size_t bytes) {
  return either(fd, [=](Description& file) { return file.read(into, bytes); },
                [=] { return real().read(fd, into, bytes); });
}
HF_DOOR ssize_t __read_chk(int fd, void* into, size_t bytes, size_t room) {
  return either(fd, [=](Description& file) { return bytes > room ? (std::abort(), -1) : file.read(into, bytes); },
                [=] { return real().__read_chk(fd, into, bytes, room); });
}
HF_DOOR ssize_t pread(int fd, void* into, size_t bytes, off_t offset) {
  return either(fd, [=](Description& file) { return read_at(file, offset, into, bytes); },
                [=] { return real().pread(fd, into, bytes, offset); });
}
HF_DOOR ssize_t pread64(int fd, void* into, size_t bytes, off64_t offset) {
  return either(fd, [=](Description& file) { return read_at(file, offset, into, bytes); },
                [=] { return real().pread64(fd, into, bytes, offset); });
}
HF_DOOR ssize_t __pread_chk(int fd, void* into, size_t bytes, off_t offset, size_t room) {
  return either(fd, [=](Description& file) { return bytes > room ? (std::abort(), -1) : read_at(file, offset, into, bytes); },
                [=] { return real().__pread_chk(fd, into, bytes, offset, room); });
}
HF_DOOR ssize_t __pread64_chk(int fd, void* into, size_t bytes, off64_t offset, size_t room) {
  return either(fd, [=](Description& file) { return bytes > room ? (std::abort(), -1) : read_at(file, offset, into, bytes); },
                [=] { return real().__pread64_chk(fd, into, bytes, offset, room); });
}
HF_DOOR ssize_t readv(int fd, const iovec* into, int count) {
  return either(fd, [=](Description& file) { return read_vectors_2(file, into, count, -1); },
                [=] { return real().readv(fd, into, count); });
}
HF_DOOR ssize_t preadv(int fd, const iovec* into, int count, off_t offset) {
  return either(fd, [=](Description& file) { return read_vectors_at(file, into, count, offset); },
                [=] { return real().preadv(fd, into, count, offset); });
}
HF_DOOR ssize_t preadv64(int fd, const iovec* into, int count, off64_t offset) {
  return either(fd, [=](Description& file) { return read_vectors_at(file, into, count, offset); },
                [=] { return real().preadv64(fd, into, count, offset); });
}
HF_DOOR ssize_t preadv2(int fd, const iovec* into, int count, off_t offset, int flags) {
  return either(fd, [=](Description& file) { return read_vectors_2(file, into, count, offset); },
                [=] { return real().preadv2(fd, into, count, offset, flags); });
}
HF_DOOR ssize_t preadv64v2(int fd, const iovec* into, int count, off64_t offset, int flags) {
  return either(fd, [=](Description& file) { return read_vectors_2(file, into, count, offset); },
                [=] { return real().preadv64v2(fd, into, count, offset, flags); });
}
HF_DOOR off_t lseek(int fd, off_t offset, int whence) noexcept {
  return either(fd, [=](Description& file) { return file.seek(offset, whence); },
                [=] { return real().lseek(fd, offset, whence); });
}
HF_DOOR off64_t lseek64(int fd, off64_t offset, int whence) noexcept {
  return either(fd, [=](Description& file) { return off64_t(file.seek(offset, whence)); },
                [=] { return real().lseek64(fd, offset, whence); });
}
HF_DOOR int flock(int fd, int operation) noexcept {
  return either(fd, [](Description&) { return 0; }, [=] { return real().flock(fd, operation); });
}

// ---- numbers

HF_DOOR int close(int fd) {
  if (raw::is_own(unsigned(fd))) return errno = EBADF, -1;  // the program never got it
  forget(fd);
  return real().close(fd);
}
HF_DOOR int close_range(unsigned first, unsigned last, int flags) noexcept {
  constexpr int only_marks = 4;  // CLOSE_RANGE_CLOEXEC
  if (flags & only_marks) return real().close_range(first, last, flags);
  forget_range(first, last);
  return close_all_but_own(first, last, flags);
}
HF_DOOR void closefrom(int first) noexcept {
  forget_range(unsigned(std::max(first, 0)), ~0u);
  (void)close_all_but_own(unsigned(std::max(first, 0)), ~0u, 0);
}
HF_DOOR int dup(int fd) noexcept { return duplicated(fd, real().dup(fd)); }
HF_DOOR int dup2(int from, int to) noexcept {
  return duplicate_over(from, to, [=] { return real().dup2(from, to); });
}
HF_DOOR int dup3(int from, int to, int flags) noexcept {
  return duplicate_over(from, to, [=] { return real().dup3(from, to, flags); });
}
HF_DOOR int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return control(fd, command, argument, real().fcntl);
}
HF_DOOR int fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return control(fd, command, argument, real().fcntl64);
}

// ---- writing

HF_DOOR ssize_t write(int fd, const void* from, size_t bytes) {
  return not_for_writing(fd, [=] { return real().write(fd, from, bytes); });
}
HF_DOOR ssize_t pwrite(int fd, const void* from, size_t bytes, off_t offset) {
  return not_for_writing(fd, [=] { return real().pwrite(fd, from, bytes, offset); });
}
HF_DOOR ssize_t pwrite64(int fd, const void* from, size_t bytes, off64_t offset) {
  return not_for_writing(fd, [=] { return real().pwrite64(fd, from, bytes, offset); });
}
HF_DOOR ssize_t writev(int fd, const iovec* from, int count) {
  return not_for_writing(fd, [=] { return real().writev(fd, from, count); });
}
HF_DOOR ssize_t pwritev(int fd, const iovec* from, int count, off_t offset) {
  return not_for_writing(fd, [=] { return real().pwritev(fd, from, count, offset); });
}
HF_DOOR ssize_t pwritev64(int fd, const iovec* from, int count, off64_t offset) {
  return not_for_writing(fd, [=] { return real().pwritev64(fd, from, count, offset); });
}
HF_DOOR ssize_t pwritev2(int fd, const iovec* from, int count, off_t offset, int flags) {
  return not_for_writing(fd, [=] { return real().pwritev2(fd, from, count, offset, flags); });
}
HF_DOOR ssize_t pwritev64v2(int fd, const iovec* from, int count, off64_t offset, int flags) {
  return not_for_writing(fd, [=] { return real().pwritev64v2(fd, from, count, offset, flags); });
}
HF_DOOR int fallocate(int fd, int mode, off_t offset, off_t length) {
  return not_for_writing(fd, [=] { return real().fallocate(fd, mode, offset, length); });
}
HF_DOOR int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  return not_for_writing(fd, [=] { return real().fallocate64(fd, mode, offset, length); });
}
HF_DOOR int posix_fallocate(int fd, off_t offset, off_t length) {
  return find(fd) ? EBADF : real().posix_fallocate(fd, offset, length);
}
HF_DOOR int posix_fallocate64(int fd, off64_t offset, off64_t length) {
  return find(fd) ? EBADF : real().posix_fallocate64(fd, offset, length);
}
HF_DOOR int ftruncate(int fd, off_t length) noexcept {
  return find(fd) ? (errno = EINVAL, -1) : real().ftruncate(fd, length);
}
HF_DOOR int ftruncate64(int fd, off64_t length) noexcept {
  return find(fd) ? (errno = EINVAL, -1) : real().ftruncate64(fd, length);
}

// ---- from kernel to kernel: whoever calls these is ready to read and write instead

HF_DOOR ssize_t sendfile(int to, int from, off_t* offset, size_t bytes) noexcept {
  return find(from) || find(to) ? (errno = EINVAL, -1) : real().sendfile(to, from, offset, bytes);
}
HF_DOOR ssize_t sendfile64(int to, int from, off64_t* offset, size_t bytes) noexcept {
  return find(from) || find(to) ? (errno = EINVAL, -1) : real().sendfile64(to, from, offset, bytes);
}
HF_DOOR ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes, unsigned flags) {
  return find(from) || find(to) ? (errno = EXDEV, -1)
                                : real().copy_file_range(from, from_offset, to, to_offset, bytes, flags);
}
HF_DOOR ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes, unsigned flags) {
  return find(from) || find(to) ? (errno = EINVAL, -1) : real().splice(from, from_offset, to, to_offset, bytes, flags);
}

HF_DOOR void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) noexcept {
  if (fd >= 0 && !(flags & MAP_ANONYMOUS))
    if (auto file = find(fd)) return map_content(*file, address, length, protection, flags, offset);
  return real().mmap(address, length, protection, flags, fd, offset);
}
HF_DOOR void* mmap64(void* address, size_t length, int protection, int flags, int fd, off64_t offset) noexcept {
  if (fd >= 0 && !(flags & MAP_ANONYMOUS))
    if (auto file = find(fd)) return map_content(*file, address, length, protection, flags, offset);
  return real().mmap64(address, length, protection, flags, fd, offset);
}
