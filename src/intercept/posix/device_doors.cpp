// Doors by which a program asks whether a descriptor is ready, a terminal or a device: what a regular file says.
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <climits>
#include <cstdarg>
#include <cstring>

#include "intercept/posix/door.hpp"
#include "intercept/posix/stand_in.hpp"

namespace {

using namespace holdfast::intercept::posix;
namespace raw = holdfast::raw;

// Standard output is the kernel's pipe.
bool is_served(int fd) { return fd >= 0 && is_watched(fd) && !stands_in(fd) && find(fd); }

// ---- ready: always

constexpr short always_ready = POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;

// `native(at_once)` polls the list. Ours are numbers that the kernel passes over meanwhile; nothing is allocated, for handlers poll too.
template <class Native>
int poll_with_ours(pollfd* list, nfds_t count, Native native) {
  constexpr int passed_over = INT_MIN;
  int ready = 0;
  bool any = false;
  for (nfds_t i = 0; inside == 0 && list && i < count; ++i) {
    if (!is_served(list[i].fd)) continue;
    list[i].fd += passed_over;
    ready += (list[i].events & always_ready) != 0;
    any = true;
  }
  int others = native(ready > 0);
  for (nfds_t i = 0; any && i < count; ++i) {
    if (list[i].fd >= passed_over + most_descriptors) continue;
    list[i].fd -= passed_over;
    list[i].revents = short(list[i].events & always_ready);
  }
  for (nfds_t i = 0; others > 0 && i < count; ++i) {
    if (list[i].fd < 0 || !(list[i].revents & POLLNVAL) || !adopt(list[i].fd)) continue;
    list[i].revents = short(list[i].events & always_ready);
    others -= list[i].revents == 0;
  }
  return others < 0 ? others : others + ready;
}

// Takes ours out of a set; how many there were.
int take_ours(int count, fd_set* set, fd_set& ours) {
  FD_ZERO(&ours);
  int taken = 0;
  for (int fd = 0; set && fd < count; ++fd) {
    if (!FD_ISSET(fd, set) || !is_served(fd)) continue;
    FD_CLR(fd, set);
    FD_SET(fd, &ours);
    ++taken;
  }
  return taken;
}
void put_back(int count, fd_set* set, const fd_set& ours) {
  for (int fd = 0; set && fd < count; ++fd)
    if (FD_ISSET(fd, &ours)) FD_SET(fd, set);
}

template <class Native>
int select_with_ours(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptions, Native native) {
  if (inside > 0 || count < 0 || count > FD_SETSIZE) return native(false);
  fd_set reads, writes, none;
  const int ready = take_ours(count, to_read, reads) + take_ours(count, to_write, writes);
  (void)take_ours(count, exceptions, none);
  const int others = native(ready > 0);
  if (others < 0) return others;
  put_back(count, to_read, reads);
  put_back(count, to_write, writes);
  return others + ready;
}

// ---- a terminal, a device: never

int set_close_on_exec(int fd, bool yes) { return raw::fcntl(fd, F_SETFD, yes ? FD_CLOEXEC : 0); }

int waiting_bytes(Description& file, int* into) {
  const OurCode ours_now;
  const auto at = file.seek(0, SEEK_CUR);
  const auto size = file.size();
  if (!at || !size) return fail(file, at ? size.status() : at.status());
  *into = int(int64_t(*size) - *at);
  return 0;
}

bool clones(unsigned long request) { return request == FICLONE || request == FICLONERANGE || request == FIDEDUPERANGE; }

// The kernel's descriptor of a plain file, around what it is asked. -1 and errno: a protected file has none.
int kernels_own(Description& file, bool to_write) {
  if (!file.is_plain()) return errno = EOPNOTSUPP, -1;
  const OurCode ours_now;
  if (const holdfast::Status met = file.meet_others(); !met.ok()) return fail(file, met);
  const auto native = file.native_descriptor(to_write);
  return native ? *native : fail(file, native.status());
}

// Bytes are to be shared with `from`, which may be one of ours.
int clone(int to, unsigned long request, void* argument) {
  int from = request == FICLONE ? int(reinterpret_cast<intptr_t>(argument)) : -1;
  file_clone_range range{};
  if (request == FICLONERANGE && argument) {
    range = *static_cast<file_clone_range*>(argument);
    from = int(range.src_fd);
  }
  if (const auto file = find(from)) {
    from = kernels_own(*file, false);
    if (from < 0) return -1;
  }
  range.src_fd = from;
  if (request == FICLONE) return real().ioctl(to, request, from);
  return real().ioctl(to, request, request == FICLONERANGE && argument ? &range : argument);
}

int ask_kernel(Description& file, unsigned long request, void* argument) {
  const bool changes = clones(request);
  const int own = kernels_own(file, changes);
  if (own < 0) return -1;
  const int result = changes ? clone(own, request, argument) : real().ioctl(own, request, argument);
  const KeepErrno keep;
  if (changes) (void)kernels_own(file, true);  // what was read of it before is old
  return result;
}

int ask_served(int fd, Description& file, unsigned long request, void* argument) {
  switch (request) {
    case FIOCLEX: return set_close_on_exec(fd, true);
    case FIONCLEX: return set_close_on_exec(fd, false);
    case FIONREAD: return argument ? waiting_bytes(file, static_cast<int*>(argument)) : (errno = EFAULT, -1);
    case FIONBIO: {
      const bool yes = argument && *static_cast<int*>(argument);
      return file.set_flags(yes ? file.flags() | O_NONBLOCK : file.flags() & ~O_NONBLOCK), 0;
    }
    default: break;
  }
  if (file.is_plain()) return ask_kernel(file, request, argument);
  return errno = clones(request) || request == FS_IOC_FIEMAP ? EOPNOTSUPP : ENOTTY, -1;
}

}  // namespace

HF_DOOR int poll(pollfd* list, nfds_t count, int timeout) {
  return poll_with_ours(list, count, [=](bool at_once) { return real().poll(list, count, at_once ? 0 : timeout); });
}
HF_DOOR int __poll_chk(pollfd* list, nfds_t count, int timeout, size_t room) {
  return poll_with_ours(list, room / sizeof *list < count ? 0 : count,
                        [=](bool at_once) { return real().__poll_chk(list, count, at_once ? 0 : timeout, room); });
}
HF_DOOR int ppoll(pollfd* list, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  constexpr static timespec no_time{};
  return poll_with_ours(list, count, [=](bool at_once) { return real().ppoll(list, count, at_once ? &no_time : timeout, mask); });
}
HF_DOOR int __ppoll_chk(pollfd* list, nfds_t count, const timespec* timeout, const sigset_t* mask, size_t room) {
  constexpr static timespec no_time{};
  return poll_with_ours(list, room / sizeof *list < count ? 0 : count,
                        [=](bool at_once) { return real().__ppoll_chk(list, count, at_once ? &no_time : timeout, mask, room); });
}
HF_DOOR int select(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptions, timeval* timeout) {
  return select_with_ours(count, to_read, to_write, exceptions, [=](bool at_once) {
    timeval no_time{};
    return real().select(count, to_read, to_write, exceptions, at_once ? &no_time : timeout);
  });
}
HF_DOOR int pselect(int count, fd_set* to_read, fd_set* to_write, fd_set* exceptions, const timespec* timeout, const sigset_t* mask) {
  return select_with_ours(count, to_read, to_write, exceptions, [=](bool at_once) {
    const timespec no_time{};
    return real().pselect(count, to_read, to_write, exceptions, at_once ? &no_time : timeout, mask);
  });
}
HF_DOOR int epoll_ctl(int set, int operation, int fd, epoll_event* event) noexcept {
  if (operation == EPOLL_CTL_ADD && inside == 0 && is_served(fd)) return errno = EPERM, -1;
  const int result = real().epoll_ctl(set, operation, fd, event);
  if (result < 0 && operation == EPOLL_CTL_ADD && find_after_failure(fd)) errno = EPERM;
  return result;
}
HF_DOOR int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (inside > 0) return real().ioctl(fd, request, argument);
  if (is_served(fd))
    if (const auto file = find(fd)) return ask_served(fd, *file, request, argument);
  const int result = clones(request) ? clone(fd, request, argument) : real().ioctl(fd, request, argument);
  const auto file = result < 0 ? find_after_failure(fd) : nullptr;
  return file ? ask_served(fd, *file, request, argument) : result;
}
HF_DOOR int isatty(int fd) noexcept {
  if (is_served(fd)) return errno = ENOTTY, 0;
  const int yes = real().isatty(fd);
  if (!yes && find_after_failure(fd)) errno = ENOTTY;
  return yes;
}
namespace {

// The error of a call that asks for a terminal's name.
template <class Native>
int terminal_of(int fd, Native native) {
  if (is_served(fd)) return errno = ENOTTY;
  const int error = native();
  return error == EBADF && find_after_failure(fd) ? errno = ENOTTY : error;
}

}  // namespace

HF_DOOR char* ttyname(int fd) noexcept {
  if (is_served(fd)) return errno = ENOTTY, nullptr;
  char* const name = real().ttyname(fd);
  if (!name && find_after_failure(fd)) errno = ENOTTY;
  return name;
}
HF_DOOR int ttyname_r(int fd, char* into, size_t bytes) noexcept {
  return terminal_of(fd, [=] { return real().ttyname_r(fd, into, bytes); });
}
HF_DOOR int __ttyname_r_chk(int fd, char* into, size_t bytes, size_t room) {
  return terminal_of(fd, [=] { return real().__ttyname_r_chk(fd, into, bytes, room); });
}
HF_DOOR int tcgetattr(int fd, termios* into) noexcept {
  if (is_served(fd)) return errno = ENOTTY, -1;
  const int result = real().tcgetattr(fd, into);
  if (result < 0 && find_after_failure(fd)) errno = ENOTTY;
  return result;
}
