// Doors that open: open and its family, fopen, freopen, fdopen.
#include <cstdarg>
#include <cstring>

#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"

namespace {

using namespace holdfast::intercept::posix;

bool has_mode(int flags) { return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE; }
bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_TRUNC | O_CREAT)); }
// These ask for the entry or a directory, not for content.
bool asks_for_content(int flags) { return !(flags & (O_PATH | O_DIRECTORY)); }

// A file that is protected is opened to be read or not at all. `open_native` is the door that the program called.
template <class OpenNative>
int open_any(int directory, const char* path, int flags, OpenNative open_native) {
  if (inside > 0 || !path || !asks_for_content(flags)) return open_native();
  if (writes(flags) && is_protected(directory, path)) {
    if ((flags & O_CREAT) && (flags & O_EXCL)) return errno = EEXIST, -1;
    // O_RDONLY | O_CREAT without O_TRUNC creates nothing here and writes nothing.
    if ((flags & O_ACCMODE) == O_RDONLY && !(flags & O_TRUNC)) return open_descriptor(directory, path, flags);
    refuse_writing(full_path(directory, path));
    return errno = EPERM, -1;
  }
  const int fd = open_native();
  if (writes(flags)) return fd;
  if (fd < 0) return is_protected_after(errno, directory, path) ? open_descriptor(directory, path, flags) : -1;
  if (!is_stub(fd)) return fd;
  real().close(fd);
  return open_descriptor(directory, path, flags);
}

// ---- streams

ssize_t stream_read(void* cookie, char* into, size_t bytes) {
  auto description = find(int(reinterpret_cast<intptr_t>(cookie)));
  return description ? description->read(into, bytes) : (errno = EBADF, -1);
}

int stream_seek(void* cookie, off64_t* position, int whence) {
  auto description = find(int(reinterpret_cast<intptr_t>(cookie)));
  const off_t to = description ? description->seek(*position, whence) : (errno = EBADF, -1);
  if (to >= 0) *position = to;
  return to >= 0 ? 0 : -1;
}

int stream_close(void* cookie) {
  const int fd = int(reinterpret_cast<intptr_t>(cookie));
  forget(fd);
  return real().close(fd);
}

FILE* stream_on(int fd) {
  cookie_io_functions_t functions = {};
  functions.read = stream_read;
  functions.seek = stream_seek;
  functions.close = stream_close;
  return fopencookie(reinterpret_cast<void*>(intptr_t(fd)), "r", functions);
}

bool mode_writes(const char* mode) { return *mode != 'r' || std::strchr(mode, '+'); }

FILE* open_stream(const char* path, const char* mode) {
  const int fd = open_descriptor(AT_FDCWD, path, std::strchr(mode, 'e') ? O_CLOEXEC : 0);
  if (fd < 0) return nullptr;
  FILE* stream = stream_on(fd);
  if (!stream) {
    forget(fd);
    real().close(fd);
  }
  return stream;
}

template <class OpenNative>
FILE* fopen_any(const char* path, const char* mode, OpenNative open_native) {
  if (inside > 0 || !path || !mode) return open_native();
  if (mode_writes(mode)) {
    if (!is_protected(AT_FDCWD, path)) return open_native();
    if (*mode == 'w' && std::strchr(mode, 'x')) return errno = EEXIST, nullptr;
    refuse_writing(path);
    return errno = EPERM, nullptr;
  }
  FILE* stream = open_native();
  if (!stream) return is_protected_after(errno, AT_FDCWD, path) ? open_stream(path, mode) : nullptr;
  if (!is_stub(fileno(stream))) return stream;
  fclose(stream);
  return open_stream(path, mode);
}

template <class OpenNative>
FILE* freopen_any(const char* path, FILE* stream, OpenNative open_native) {
  if (inside > 0 || !path || !is_protected(AT_FDCWD, path)) return open_native();
  complain(path, "a protected file cannot take an open stream's place (freopen); open it with fopen");
  fclose(stream);
  return errno = EPERM, nullptr;
}

mode_t mode_from(va_list arguments, int flags) { return has_mode(flags) ? va_arg(arguments, mode_t) : 0; }

}  // namespace

#define HF_MODE             \
  va_list arguments;        \
  va_start(arguments, flags); \
  const mode_t mode = mode_from(arguments, flags); \
  va_end(arguments)

HF_DOOR int open(const char* path, int flags, ...) {
  HF_MODE;
  return open_any(AT_FDCWD, path, flags, [=] { return real().open(path, flags, mode); });
}
HF_DOOR int open64(const char* path, int flags, ...) {
  HF_MODE;
  return open_any(AT_FDCWD, path, flags, [=] { return real().open64(path, flags, mode); });
}
HF_DOOR int openat(int directory, const char* path, int flags, ...) {
  HF_MODE;
  return open_any(directory, path, flags, [=] { return real().openat(directory, path, flags, mode); });
}
HF_DOOR int openat64(int directory, const char* path, int flags, ...) {
  HF_MODE;
  return open_any(directory, path, flags, [=] { return real().openat64(directory, path, flags, mode); });
}
HF_DOOR int __open_2(const char* path, int flags) {
  return open_any(AT_FDCWD, path, flags, [=] { return real().__open_2(path, flags); });
}
HF_DOOR int __open64_2(const char* path, int flags) {
  return open_any(AT_FDCWD, path, flags, [=] { return real().__open64_2(path, flags); });
}
HF_DOOR int __openat_2(int directory, const char* path, int flags) {
  return open_any(directory, path, flags, [=] { return real().__openat_2(directory, path, flags); });
}
HF_DOOR int __openat64_2(int directory, const char* path, int flags) {
  return open_any(directory, path, flags, [=] { return real().__openat64_2(directory, path, flags); });
}
HF_DOOR int creat(const char* path, mode_t mode) {
  return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, [=] { return real().creat(path, mode); });
}
HF_DOOR int creat64(const char* path, mode_t mode) {
  return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, [=] { return real().creat64(path, mode); });
}

HF_DOOR FILE* fopen(const char* path, const char* mode) {
  return fopen_any(path, mode, [=] { return real().fopen(path, mode); });
}
HF_DOOR FILE* fopen64(const char* path, const char* mode) {
  return fopen_any(path, mode, [=] { return real().fopen64(path, mode); });
}
HF_DOOR FILE* freopen(const char* path, const char* mode, FILE* stream) {
  return freopen_any(path, stream, [=] { return real().freopen(path, mode, stream); });
}
HF_DOOR FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  return freopen_any(path, stream, [=] { return real().freopen64(path, mode, stream); });
}
HF_DOOR FILE* fdopen(int fd, const char* mode) noexcept {
  if (!find(fd)) return real().fdopen(fd, mode);
  if (mode && !mode_writes(mode)) return stream_on(fd);
  return errno = EINVAL, nullptr;  // as for any descriptor that was opened to be read
}
