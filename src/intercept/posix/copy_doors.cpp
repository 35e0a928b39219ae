// Doors that move bytes from one descriptor to another. Between plain files with buffers before them the kernel does it, else memory does.
#include <sys/ioctl.h>

#include <algorithm>
#include <vector>

#include "intercept/posix/checkpoints.hpp"
#include "intercept/posix/door.hpp"
#include "intercept/posix/own_failures.hpp"

namespace {

using namespace holdfast::intercept::posix;
namespace raw = holdfast::raw;
using holdfast::current_meter, holdfast::Meter;
using File = std::shared_ptr<Description>;

constexpr size_t piece_bytes = 1 << 20, most_bytes_of_a_call = 0x7ffff000;  // as the kernel

bool is_a(int fd, mode_t kind) {
  struct stat state;
  return raw::fstat(fd, &state) == 0 && (state.st_mode & S_IFMT) == kind;
}
bool allows(int fd, int access) {
  const int flags = raw::fcntl(fd, F_GETFL), has = flags & O_ACCMODE;
  return flags >= 0 && !(flags & O_PATH) && (has == O_RDWR || has == access);
}
bool may_read(int fd, const File& file) { return file ? file->reads() : allows(fd, O_RDONLY); }
bool may_write(int fd, const File& file) { return file ? file->writes() : allows(fd, O_WRONLY); }
bool appends(int fd, const File& file) { return (file ? file->flags() : raw::fcntl(fd, F_GETFL)) & O_APPEND; }

// Where a call begins to read or write: the program's own number, or the descriptor's position. It comes to be where the call has ended.
class Place {
 public:
  Place(int fd, off64_t* given) : fd_(fd), given_(given), at_(given ? *given : lseek64(fd, 0, SEEK_CUR)) {}
  off64_t at() const { return at_; }
  void advance(size_t bytes) {
    at_ += off64_t(bytes);
    if (given_) *given_ = at_;
    else (void)lseek64(fd_, at_, SEEK_SET);
  }

 private:
  const int fd_;
  off64_t* const given_;
  off64_t at_;
};

// A plain file's part goes past the doors, which would count it as a call that the other file's targets were asked.
// `put(bytes, count, done)` answers as write does. What was moved, or -1 where nothing was.
template <class Put>
ssize_t copy_pieces(int from, const File& from_file, Place& place, size_t bytes, Put put) {
  std::vector<char> memory(std::min(bytes, piece_bytes));
  size_t done = 0;
  while (done < bytes) {
    const size_t wanted = std::min(memory.size(), bytes - done);
    const off64_t at = place.at() + off64_t(done);
    const ssize_t got = from_file ? pread64(from, memory.data(), wanted, at) : real().pread64(from, memory.data(), wanted, at);
    if (got == 0) break;
    const ssize_t moved = got < 0 ? -1 : put(memory.data(), size_t(got), done);
    if (moved < 0 && done == 0) return -1;
    if (moved <= 0) break;
    done += size_t(moved);
    if (moved < got) break;
  }
  place.advance(done);
  return ssize_t(done);
}

// A checkpoint that the kernel could not write. It may have been read that failed: then it is not whole either.
ssize_t told(int to, ssize_t answer) {
  if (answer < 0 && may_be_alone(errno)) [[unlikely]]
    checkpoint_write_failed(to, errno);
  return answer;
}

ssize_t send(int to, const File& to_file, int from, const File& from_file, off64_t* offset, size_t bytes) {
  if (!may_read(from, from_file) || !may_write(to, to_file)) return errno = EBADF, -1;
  if (appends(to, to_file) || (!from_file && !is_a(from, S_IFREG))) return errno = EINVAL, -1;
  Place place(from, offset);
  if (place.at() < 0) return errno = EINVAL, -1;
  return copy_pieces(from, from_file, place, std::min(bytes, most_bytes_of_a_call), [&](const char* piece, size_t count, size_t) {
    return to_file ? write(to, piece, count) : told(to, real().write(to, piece, count));
  });
}

// The descriptor that the kernel has of it, with all that was written here in the file. -1 and errno.
int kernels_own(int fd, const File& file, bool to_write) {
  if (!file) return fd;
  const OurCode ours_now;
  if (const holdfast::Status met = file->meet_others(); !met.ok()) return fail(*file, met);
  const auto native = file->native_descriptor(to_write);
  return native ? *native : fail(*file, native.status());
}

ssize_t copy_by_kernel(int from, const File& from_file, Place& source, int to, const File& to_file, Place& sink, size_t bytes) {
  const int in = kernels_own(from, from_file, false), out = in < 0 ? -1 : kernels_own(to, to_file, true);
  if (out < 0) return -1;
  off64_t in_at = source.at(), out_at = sink.at();
  const ssize_t done = told(to, real().copy_file_range(in, &in_at, out, &out_at, bytes, 0));
  const KeepErrno keep;
  if (to_file) (void)kernels_own(to, to_file, true);  // what was read of it before is old
  if (done <= 0) return done;
  source.advance(size_t(done));
  sink.advance(size_t(done));
  return done;
}

bool is_protected_file(const File& file) { return file && !file->is_plain(); }

ssize_t copy_range(int from, const File& from_file, off64_t* from_offset, int to, const File& to_file, off64_t* to_offset, size_t bytes,
                   unsigned flags) {
  if (flags != 0) return errno = EINVAL, -1;
  if (!may_read(from, from_file) || !may_write(to, to_file) || appends(to, to_file)) return errno = EBADF, -1;
  if ((!from_file && !is_a(from, S_IFREG)) || (!to_file && !is_a(to, S_IFREG))) return errno = EINVAL, -1;
  Place source(from, from_offset), sink(to, to_offset);
  if (source.at() < 0 || sink.at() < 0) return errno = EINVAL, -1;
  bytes = std::min(bytes, most_bytes_of_a_call);
  if (!is_protected_file(from_file) && !is_protected_file(to_file)) return copy_by_kernel(from, from_file, source, to, to_file, sink, bytes);
  const off64_t apart = source.at() > sink.at() ? source.at() - sink.at() : sink.at() - source.at();
  if (from_file && to_file && from_file->file_id() == to_file->file_id() && apart < off64_t(bytes)) return errno = EINVAL, -1;
  const ssize_t done = copy_pieces(from, from_file, source, bytes, [&](const char* piece, size_t count, size_t before) {
    const off64_t at = sink.at() + off64_t(before);
    return to_file ? pwrite64(to, piece, count, at) : told(to, real().pwrite64(to, piece, count, at));
  });
  if (done > 0) sink.advance(size_t(done));
  return done;
}

// 1, or 0 where the call must not wait.
bool pipe_is_ready(int pipe, short event, unsigned flags) {
  const bool at_once = (flags & SPLICE_F_NONBLOCK) || (raw::fcntl(pipe, F_GETFL) & O_NONBLOCK);
  pollfd one{pipe, event, 0};
  return real().poll(&one, 1, at_once ? 0 : -1) > 0 || (errno = at_once ? EAGAIN : errno, false);
}

// As much as certainly fits: a call that waited for the rest would wait for its own caller.
ssize_t splice_into_pipe(int from, const File& from_file, off64_t* offset, int pipe, size_t bytes, unsigned flags) {
  constexpr size_t always_fits = 4096;
  Place place(from, offset);
  if (place.at() < 0) return errno = EINVAL, -1;
  if (!pipe_is_ready(pipe, POLLOUT, flags)) return -1;
  int waiting = 1;
  const int room = real().ioctl(pipe, FIONREAD, &waiting) == 0 && waiting == 0 ? real().fcntl(pipe, F_GETPIPE_SZ) : 0;
  return copy_pieces(from, from_file, place, std::min(bytes, std::max(size_t(std::max(room, 0)), always_fits)),
                     [=](const char* piece, size_t count, size_t) { return write(pipe, piece, count); });
}

ssize_t splice_out_of_pipe(int pipe, int to, off64_t* offset, size_t bytes, unsigned flags) {
  Place place(to, offset);
  if (place.at() < 0) return errno = EINVAL, -1;
  if (!pipe_is_ready(pipe, POLLIN, flags)) return -1;
  std::vector<char> memory(std::min(bytes, piece_bytes));
  const ssize_t got = read(pipe, memory.data(), memory.size());
  if (got <= 0) return got;
  for (ssize_t done = 0; done < got;) {
    const ssize_t put = pwrite64(to, memory.data() + done, size_t(got - done), place.at());
    if (put <= 0) return done > 0 ? done : -1;
    place.advance(size_t(put));
    done += put;
  }
  return got;
}

ssize_t splice_served(int from, const File& from_file, off64_t* from_offset, int to, const File& to_file, off64_t* to_offset, size_t bytes,
                      unsigned flags) {
  const int pipe = from_file ? to : from;
  if ((from_file && to_file) || !is_a(pipe, S_IFIFO)) return errno = EINVAL, -1;
  if (from_file ? to_offset : from_offset) return errno = ESPIPE, -1;
  if (!may_read(from, from_file) || !may_write(to, to_file)) return errno = EBADF, -1;
  if (to_file && appends(to, to_file)) return errno = EINVAL, -1;
  if (bytes == 0) return 0;
  return from_file ? splice_into_pipe(from, from_file, from_offset, to, bytes, flags) : splice_out_of_pipe(from, to, to_offset, bytes, flags);
}

// Two accesses of one call, neither of them within the other: each begins with the meter of the caller. What is asked of targets meanwhile counts as
// the file's that is read, where that is served by us, else as the other's.
template <class Serve>
[[gnu::noinline]] ssize_t watched_copy(int from, const off64_t* from_place, int to, const off64_t* to_place, Serve serve) {
  const Call taken = reads(from_place ? *from_place : at_position), put = writes(to_place ? *to_place : at_position);
  Meter* const callers = current_meter;
  Watch writing(to);
  Meter* const of_written = current_meter;
  current_meter = callers;
  Watch reading(from);
  if (current_meter == callers) current_meter = of_written;
  const ssize_t answer = serve();
  reading.ends(taken, answer);
  writing.ends(put, answer);
  current_meter = callers;
  return answer;
}

// A place is null where the file's own position is meant. `serve(from, to)` where one of the two is served by us.
template <class Serve, class Native>
ssize_t moved(int from, int to, const off64_t* from_place, const off64_t* to_place, Serve serve, Native native) {
  const File from_file = find_or_adopt(from), to_file = find_or_adopt(to);
  const auto call = [&]() -> ssize_t { return from_file || to_file ? serve(from_file, to_file) : native(); };
  return observes() ? watched_copy(from, from_place, to, to_place, call) : call();
}

}  // namespace

HF_DOOR ssize_t sendfile(int to, int from, off_t* offset, size_t bytes) noexcept {
  return moved(
      from, to, offset, nullptr, [=](const File& in, const File& out) { return send(to, out, from, in, offset, bytes); },
      [=] { return told(to, real().sendfile(to, from, offset, bytes)); });
}
HF_DOOR ssize_t sendfile64(int to, int from, off64_t* offset, size_t bytes) noexcept {
  return moved(
      from, to, offset, nullptr, [=](const File& in, const File& out) { return send(to, out, from, in, offset, bytes); },
      [=] { return told(to, real().sendfile64(to, from, offset, bytes)); });
}
HF_DOOR ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes, unsigned flags) {
  return moved(
      from, to, from_offset, to_offset,
      [=](const File& in, const File& out) { return copy_range(from, in, from_offset, to, out, to_offset, bytes, flags); },
      [=] { return told(to, real().copy_file_range(from, from_offset, to, to_offset, bytes, flags)); });
}
HF_DOOR ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes, unsigned flags) {
  return moved(
      from, to, from_offset, to_offset,
      [=](const File& in, const File& out) { return splice_served(from, in, from_offset, to, out, to_offset, bytes, flags); },
      [=] { return told(to, real().splice(from, from_offset, to, to_offset, bytes, flags)); });
}
