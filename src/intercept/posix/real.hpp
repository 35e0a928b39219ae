// The C library's own functions, behind the doors that we export: what comes after us in the search order.
#pragma once
#include <aio.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/keep_errno.hpp"
#include "frontend/posix/own_code.hpp"

// Doors that the headers declare only for some options or no longer declare at all.
extern "C" {
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int directory, const char* path, int flags);
int __openat64_2(int directory, const char* path, int flags);
ssize_t __read_chk(int fd, void* into, size_t bytes, size_t room);
ssize_t __pread_chk(int fd, void* into, size_t bytes, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void* into, size_t bytes, off64_t offset, size_t room);
int __xstat(int version, const char* path, struct stat* into);
int __xstat64(int version, const char* path, struct stat64* into);
int __lxstat(int version, const char* path, struct stat* into);
int __lxstat64(int version, const char* path, struct stat64* into);
int __fxstat(int version, int fd, struct stat* into);
int __fxstat64(int version, int fd, struct stat64* into);
int __fxstatat(int version, int directory, const char* path, struct stat* into, int flags);
int __fxstatat64(int version, int directory, const char* path, struct stat64* into, int flags);
int __dprintf_chk(int fd, int level, const char* format, ...);
int __vdprintf_chk(int fd, int level, const char* format, va_list arguments);
int __poll_chk(struct pollfd* list, nfds_t count, int timeout, size_t room);
int __ppoll_chk(struct pollfd* list, nfds_t count, const struct timespec* timeout, const sigset_t* mask, size_t room);
ssize_t __readlink_chk(const char* path, char* into, size_t bytes, size_t room);
ssize_t __readlinkat_chk(int directory, const char* path, char* into, size_t bytes, size_t room);
int __ttyname_r_chk(int fd, char* into, size_t bytes, size_t room);
char* __realpath_chk(const char* path, char* into, size_t room);
}

// clang-format off
#define HF_LIBC_DOORS(X) \
  X(open) X(open64) X(__open_2) X(__open64_2) X(openat) X(openat64) X(__openat_2) X(__openat64_2) X(creat) \
  X(creat64) X(fopen) X(fopen64) X(freopen) X(freopen64) X(fdopen) X(close) X(close_range) X(closefrom) X(dup) \
  X(dup2) X(dup3) X(fcntl) X(fcntl64) X(read) X(__read_chk) X(pread) X(pread64) X(__pread_chk) X(__pread64_chk) \
  X(readv) X(preadv) X(preadv64) X(preadv2) X(preadv64v2) X(lseek) X(lseek64) X(write) X(pwrite) X(pwrite64) \
  X(writev) X(pwritev) X(pwritev64) X(pwritev2) X(pwritev64v2) X(mmap) X(mmap64) X(sendfile) X(sendfile64) \
  X(copy_file_range) X(splice) X(poll) X(ppoll) X(__poll_chk) X(__ppoll_chk) X(select) X(pselect) X(epoll_ctl) \
  X(ioctl) X(isatty) X(ttyname) X(ttyname_r) X(__ttyname_r_chk) X(tcgetattr) X(fallocate) X(fallocate64) X(posix_fallocate) X(posix_fallocate64) X(ftruncate) \
  X(ftruncate64) X(truncate) X(truncate64) X(stat) X(stat64) X(lstat) X(lstat64) X(fstat) X(fstat64) X(fstatat) \
  X(fstatat64) X(statx) X(__xstat) X(__xstat64) X(__lxstat) X(__lxstat64) X(__fxstat) X(__fxstat64) X(__fxstatat) \
  X(__fxstatat64) X(rename) X(renameat) X(renameat2) X(unlink) X(unlinkat) X(remove) X(access) X(faccessat) \
  X(flock) X(fsync) X(fdatasync) X(sync_file_range) X(syncfs) X(dprintf) X(vdprintf) X(__dprintf_chk) X(__vdprintf_chk) \
  X(_exit) X(_Exit) X(quick_exit) X(fileno) X(fileno_unlocked) X(chmod) X(fchmod) X(fchmodat) X(chown) X(lchown) X(fchown) X(fchownat) \
  X(utime) X(utimes) X(lutimes) X(futimes) X(futimesat) X(futimens) X(utimensat) X(link) X(linkat) X(posix_fadvise) \
  X(posix_fadvise64) X(readahead) X(lockf) X(lockf64) X(execve) X(execv) X(execvp) X(execvpe) X(fexecve) X(execl) \
  X(execlp) X(execle) X(vfork) X(posix_spawn) X(posix_spawnp) X(system) X(popen) X(sigaction) X(signal) \
  X(opendir) X(closedir) X(rewinddir) X(seekdir) X(telldir) X(readdir) X(readdir64) X(readdir_r) X(readdir64_r) X(getdents64) X(ftw) X(ftw64) X(nftw) X(nftw64) X(fts_read) \
  X(fts64_read) X(fts_children) X(fts64_children) X(fts_set) X(fts64_set) X(glob) X(glob64) X(rmdir) X(readlink) \
  X(readlinkat) X(__readlink_chk) X(__readlinkat_chk) X(realpath) X(__realpath_chk) X(aio_read) X(aio_read64) X(aio_write) X(aio_write64) X(aio_fsync) X(aio_fsync64) X(lio_listio) X(lio_listio64) \
  X(getxattr) X(listxattr) X(setxattr) X(removexattr) X(lgetxattr) X(llistxattr) X(lsetxattr) X(lremovexattr) X(fgetxattr) X(flistxattr) X(fsetxattr) X(fremovexattr) \
  X(statfs) X(statfs64) X(statvfs) X(statvfs64) X(fstatfs) X(fstatfs64) X(fstatvfs) X(fstatvfs64) X(pathconf) X(mkdir) X(mkdirat) \
  X(clock_gettime) X(gettimeofday) X(time) X(clock) X(times) X(getrusage) X(getrandom) X(getentropy) X(gethostname) X(uname) X(fdopendir) X(getpid) X(chdir) X(mknod) X(mknodat) X(mkfifo) X(mkfifoat) X(pthread_create)
// clang-format on

namespace holdfast::intercept::posix {

using frontend::posix::inside;
using frontend::posix::let_signals_come;
using frontend::posix::OurCode;
using frontend::posix::signals_put_off;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
struct Real {
#define HF_POINTER(name) decltype(&::name) name = nullptr;
  HF_LIBC_DOORS(HF_POINTER)
#undef HF_POINTER
};
#pragma GCC diagnostic pop

// Resolved when the library is loaded, and by whoever calls before that.
const Real& real();

// What a call of that name would come to without us, in the version that programs of today are linked to.
void* next_symbol(const char* name);

// Of a door that is not among them: the C library may be without it.
template <class Function>
Function* next_of_name(const char* name) {
  return reinterpret_cast<Function*>(next_symbol(name));
}

// What we ask beside a call of the program's does not change what it said.
using holdfast::KeepErrno;

}  // namespace holdfast::intercept::posix

// Who has called the door. In the door itself alone.
#define HF_CALLER __builtin_return_address(0)

#define HF_DOOR extern "C" __attribute__((visibility("default")))
