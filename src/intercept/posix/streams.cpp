// stdio: a protected file's FILE is a cookie stream on its descriptor.
#include <stdio_ext.h>

#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "intercept/posix/alike.hpp"
#include "intercept/posix/checkpoints.hpp"
#include "intercept/posix/copies.hpp"
#include "intercept/posix/decided.hpp"
#include "intercept/posix/descriptor_names.hpp"
#include "intercept/posix/door.hpp"
#include "intercept/posix/observe.hpp"
#include "intercept/posix/observe_streams.hpp"
#include "intercept/posix/open.hpp"
#include "intercept/posix/stand_in.hpp"
#include "intercept/posix/wide_streams.hpp"

namespace {

using namespace holdfast::intercept::posix;

// A cookie stream has no descriptor for the C library; ours have, and fileno says so. Never destroyed, for streams are used to the end.
struct Streams {
  std::mutex mutex;
  std::map<FILE*, int> numbers;
};
Streams& streams() {
  static auto* one = new Streams;
  return *one;
}
std::atomic<int> open_streams{0};

}  // namespace

int holdfast::intercept::posix::number_of_stream(FILE* stream) {
  if (open_streams.load(std::memory_order_acquire) == 0) return -1;
  std::lock_guard lock(streams().mutex);
  auto found = streams().numbers.find(stream);
  return found == streams().numbers.end() ? -1 : found->second;
}

namespace {

int number_of(void* cookie) { return int(reinterpret_cast<intptr_t>(cookie)); }

// What the C library asks of a stream is the system's call, not the program's, also where no call of the program is on the way.
class BelowStream {
 public:
  explicit BelowStream(int fd) : scope_(holdfast::current_meter ? holdfast::current_meter : meter_behind(fd)) {}

 private:
  const holdfast::MeterScope scope_;
};

ssize_t stream_read(void* cookie, char* into, size_t bytes) {
  const BelowStream below(number_of(cookie));
  return read(number_of(cookie), into, bytes);
}

// What a cookie's write may not return is -1.
ssize_t stream_write(void* cookie, const char* from, size_t bytes) {
  const BelowStream below(number_of(cookie));
  const ssize_t put = write(number_of(cookie), from, bytes);
  return put < 0 ? 0 : put;
}

int stream_seek(void* cookie, off64_t* position, int whence) {
  const BelowStream below(number_of(cookie));
  const off64_t to = lseek64(number_of(cookie), *position, whence);
  if (to >= 0) *position = to;
  return to >= 0 ? 0 : -1;
}

int stream_close(void* cookie) {
  const int fd = number_of(cookie);
  {
    std::lock_guard lock(streams().mutex);
    std::erase_if(streams().numbers, [fd](const auto& entry) { return entry.second == fd && (forget_orientation(entry.first), true); });
    --open_streams;
  }
  return close(fd);
}

// The flags of a mode ("r", "w+", "ax" ...); nothing where it makes no sense.
std::optional<int> flags_of(const char* mode) {
  int flags = std::strchr(mode, '+') ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;
  switch (*mode) {
    case 'r': break;
    case 'w': flags |= O_CREAT | O_TRUNC; break;
    case 'a': flags |= O_CREAT | O_APPEND; break;
    default: return std::nullopt;
  }
  for (const char* c = mode + 1; *c && *c != ','; ++c) {
    if (*c == 'x') flags |= O_EXCL;
    if (*c == 'e') flags |= O_CLOEXEC;
  }
  return flags;
}

FILE* stream_on(int fd, const char* mode) {
  // A mode of ours: the C library's cookies know no more than these.
  char plain[3] = {*mode, std::strchr(mode, '+') ? '+' : '\0', '\0'};
  FILE* stream = fopencookie(reinterpret_cast<void*>(intptr_t(fd)), plain, {stream_read, stream_write, stream_seek, stream_close});
  if (!stream) return nullptr;
  std::lock_guard lock(streams().mutex);
  streams().numbers[stream] = fd;
  ++open_streams;
  return stream;
}

// As the C library does: a stream that only appends says from its beginning that it is at the end.
void go_where_it_begins(int fd, int flags) {
  if ((flags & O_APPEND) && (flags & O_ACCMODE) == O_WRONLY) (void)lseek64(fd, 0, SEEK_END);
}

FILE* stream_or_close(int fd, const char* mode, int flags) {
  if (fd < 0) return nullptr;
  go_where_it_begins(fd, flags);
  FILE* stream = stream_on(fd, mode);
  if (stream && orient_stream(stream, mode)) return stream;
  const int error = errno;
  (void)(stream ? fclose(stream) : close(fd));
  return errno = error, nullptr;
}

bool is_read_checkpoint(int number, int flags) { return (flags & O_ACCMODE) != O_RDONLY && !checkpoint_read_by(number).empty(); }

// What is not ours is the C library's stream, whose modes are more than ours.
template <class OpenNative>
FILE* fopen_any(const char* path, const char* mode, bool is_told, OpenNative open_native) {
  const auto flags = inside > 0 || !path || !mode ? std::nullopt : flags_of(mode);
  if (!flags) return open_native();
  const ForProgram asking(is_told);
  const bool by_number = is_told && (*flags & ~O_CLOEXEC) == O_RDONLY && !std::strchr(mode, ',');  // what was opened is the leader's to say
  if (!by_number && !checkpoint_at(AT_FDCWD, path) && !is_read_checkpoint(number_named(path), *flags) && !concerns(AT_FDCWD, path, *flags)) {
    if (!(*flags & O_EXCL)) (void)make_with_stripes(AT_FDCWD, path, *flags, 0666);
    FILE* stream = open_native();
    if (!stream && (*mode != 'r' || !is_protected_after(errno, AT_FDCWD, path))) return nullptr;
    if (stream && !is_to_be_served(real().fileno(stream), AT_FDCWD, path)) return note_native_stream(real().fileno(stream), true), stream;
    if (stream) fclose(stream);
  }
  const int fd = open64(path, *flags, 0666);
  if (fd < 0 || find(fd) || is_random(fd)) return stream_or_close(fd, mode, *flags);
  go_where_it_begins(fd, *flags);
  FILE* stream = real().fdopen(fd, mode);  // it holds something already, and stays as it is
  if (!stream) (void)close(fd);
  else if (by_number) note_native_stream(fd, true);
  return stream;
}

// The C library cannot reopen a cookie stream either. It stays one: its number leads to the other file from here on, whatever that is.
FILE* reopen_ours(const char* path, const char* mode, FILE* stream, int number) {
  constexpr int no_reads = 4, no_writes = 8, eof_and_error = 0x30, appends = 0x1000;  // of FILE's flags, an ABI
  (void)fflush(stream);
  (void)fseeko64(stream, 0, SEEK_CUR);  // out of writing, if it was
  __fpurge(stream);
  const auto flags = flags_of(mode);
  auto file = path ? nullptr : find(number);  // the mode alone is to change
  const std::string same = file ? file->path() : "";
  const int fd = flags ? open64(path ? path : same.c_str(), path ? *flags : *flags & ~O_CREAT, 0666) : (errno = EINVAL, -1);
  if (fd < 0 || dup3(fd, number, *flags & O_CLOEXEC) < 0) {
    const int error = errno;
    if (fd >= 0) (void)close(fd);
    (void)fclose(stream);
    return errno = error, nullptr;
  }
  (void)close(fd);
  const int access = *flags & O_ACCMODE;
  stream->_flags &= ~(no_reads | no_writes | eof_and_error | appends);
  stream->_flags |= (access == O_WRONLY ? no_reads : 0) | (access == O_RDONLY ? no_writes : 0) | (*flags & O_APPEND ? appends : 0);
  stream->_offset = -1;  // not known
  go_where_it_begins(number, *flags);
  forget_orientation(stream);
  if (orient_stream(stream, mode)) return stream;
  (void)fclose(stream);
  return errno = EINVAL, nullptr;
}

// A stream that a checkpoint was written through is one no more, whatever it becomes.
template <class Reopen>
FILE* away_from_checkpoint(FILE* stream, Reopen reopen_now) {
  const int fd = real().fileno(stream);
  if (writes_checkpoint(fd)) (void)checkpoint_flushed(stream, fd);
  const ClosingCheckpoint checkpoint(fd);
  return reopen_now();
}

// A file that was opened anew and got a standard number, as that was free: away from there. The stream may have that number itself, and what stands in
// for a protected file on it is not to be taken for the file.
int beyond_standard_numbers(int fd) {
  if (fd < 0 || fd > last_standard_number) return fd;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, last_standard_number + 1);
  const int error = errno;
  (void)close(fd);
  return errno = error, moved;
}

// The FILE has to stay the same, and the C library cannot make a cookie stream of one that it has. So it gets a number of its own on which something
// of the kernel's stands in for the file. `fd` becomes that number; where there is none `error` says why.
FILE* reopen_on_number(int fd, const std::shared_ptr<Description>& file, const char* mode, FILE* stream, int flags, int error) {
  std::string again = mode;  // of what stands in, which is there
  std::erase(again, 'x');
  FILE* kept = fd >= 0 ? real().freopen("/dev/null", again.c_str(), stream) : nullptr;
  if (!kept) {
    if (fd >= 0) (void)close(fd);
    else (void)fclose(stream);
    return errno = error, nullptr;
  }
  const int number = real().fileno(kept);
  const int placed = (flags & O_CLOEXEC) ? dup3(fd, number, O_CLOEXEC) : dup2(fd, number);
  if (file && placed == number && number > last_standard_number) stand_in_where_needed(number, file, true);
  (void)close(fd);
  return kept;
}

// By the kernel's name of a descriptor: the file's own name changes with its state.
FILE* reopen_on_checkpoint(const char* path, const char* mode, int flags, FILE* stream) {
  const int fd = beyond_standard_numbers(open64(path, flags, 0666));
  if (fd < 0) {
    const int error = errno;
    (void)fclose(stream);
    return errno = error, nullptr;
  }
  if (const auto file = find(fd)) return reopen_on_number(fd, file, mode, stream, flags, 0);  // on the nodes' targets
  std::string again = mode;  // it has been made: a second time would be once too often
  std::erase(again, 'x');
  const std::string at = "/proc/self/fd/" + std::to_string(fd);
  FILE* const kept = away_from_checkpoint(stream, [&] { return real().freopen(at.c_str(), again.c_str(), stream); });
  if (kept && writes_checkpoint(fd)) checkpoint_duplicated(fd, real().fileno(kept));
  const int error = errno;
  (void)close(fd);
  errno = error;
  return kept;
}

template <class OpenNative>
FILE* freopen_elsewhere(const char* path, const char* mode, FILE* stream, std::optional<int> flags, OpenNative open_native) {
  if (!flags || !(is_protected(AT_FDCWD, path) || concerns(AT_FDCWD, path, *flags) || is_open_with_buffers(AT_FDCWD, path))) return open_native();
  const bool both = (*flags & O_ACCMODE) == O_RDWR;
  if (both) complain(path, "a stream cannot be made to read and write a protected file by freopen; open it with fopen");
  const int opened = both ? -1 : open64(path, *flags & ~O_CLOEXEC, 0666);
  const bool was_standard = opened >= 0 && opened <= last_standard_number;  // a copy stands in there for what is read
  const int fd = beyond_standard_numbers(opened);
  auto file = fd >= 0 ? find(fd) : nullptr;
  if (fd >= 0 && !file && !was_standard) {  // it holds something already, and stays as it is
    (void)close(fd);
    return open_native();
  }
  return reopen_on_number(fd, file, mode, stream, *flags, both ? EOPNOTSUPP : errno);
}

bool is_checkpoint_now(const char* path, int flags) {
  return checkpoint_at(AT_FDCWD, path) && ((flags & O_ACCMODE) != O_RDONLY || !see_checkpoint(AT_FDCWD, path).natively);
}

template <class OpenNative>
FILE* freopen_any(const char* path, const char* mode, FILE* stream, OpenNative open_native) {
  if (const int number = inside > 0 || !mode ? -1 : number_of_stream(stream); number >= 0) return reopen_ours(path, mode, stream, number);
  if (!path && inside == 0 && mode)  // the mode alone is to change
    if (const auto now = flags_of(mode); now && is_read_checkpoint(real().fileno(stream), *now))
      return reopen_on_checkpoint(checkpoint_read_by(real().fileno(stream)).c_str(), mode, *now, stream);
  const auto flags = inside > 0 || !path || !mode ? std::nullopt : flags_of(mode);
  if (!flags) return open_native();
  if ((*flags & O_ACCMODE) == O_RDWR && is_checkpoint_on_nodes(path)) {
    complain(path, "a stream cannot be made to read and write a 'shared:' file by freopen; open it with fopen");
    (void)fclose(stream);
    return errno = EOPNOTSUPP, nullptr;
  }
  if (is_checkpoint_now(path, *flags)) return reopen_on_checkpoint(path, mode, *flags, stream);
  return away_from_checkpoint(stream, [&] { return freopen_elsewhere(path, mode, stream, flags, open_native); });
}

// A change of the mode alone leaves a counted stream what it is.
template <class OpenNative>
FILE* reopen(const char* path, const char* mode, FILE* stream, OpenNative open_native) {
  if (path) observe_leaving(stream);
  observe_stream_goes(stream);
  return observe_opening(record_of_opening(path, mode), mode, [=] { return freopen_any(path, mode, stream, open_native); });
}

}  // namespace

HF_DOOR FILE* fopen(const char* path, const char* mode) {
  HF_ALIKE(AT_FDCWD, path);
  const bool is_told = replica_for(HF_CALLER) != nullptr;
  return observe_opening(record_of_opening(path, mode), mode,
                         [=] { return fopen_any(path, mode, is_told, [=] { return real().fopen(path, mode); }); });
}
HF_DOOR FILE* fopen64(const char* path, const char* mode) {
  HF_ALIKE(AT_FDCWD, path);
  const bool is_told = replica_for(HF_CALLER) != nullptr;
  return observe_opening(record_of_opening(path, mode), mode,
                         [=] { return fopen_any(path, mode, is_told, [=] { return real().fopen64(path, mode); }); });
}
HF_DOOR FILE* freopen(const char* path, const char* mode, FILE* stream) {
  HF_ALIKE(AT_FDCWD, path);
  return reopen(path, mode, stream, [=] { return real().freopen(path, mode, stream); });
}
HF_DOOR FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  HF_ALIKE(AT_FDCWD, path);
  return reopen(path, mode, stream, [=] { return real().freopen64(path, mode, stream); });
}
namespace {

FILE* fdopen_any(int fd, const char* mode) {
  auto file = mode ? find_or_adopt(fd) : nullptr;
  if (!file) {
    FILE* const stream = real().fdopen(fd, mode);
    note_native_stream(fd, stream != nullptr);
    return stream;
  }
  const auto flags = flags_of(mode);
  if (!flags) return errno = EINVAL, nullptr;
  const bool may = ((*flags & O_ACCMODE) == O_WRONLY || file->reads()) && ((*flags & O_ACCMODE) == O_RDONLY || file->writes());
  if (!may) return errno = EINVAL, nullptr;
  if ((*flags & O_APPEND) && !(file->flags() & O_APPEND)) {
    file->set_flags(file->flags() | O_APPEND);
    go_where_it_begins(fd, *flags);
  }
  return stream_on(fd, mode);
}

}  // namespace

HF_DOOR FILE* fdopen(int fd, const char* mode) noexcept {
  return observe_opening(record_of_opening(fd), mode, [=] { return fdopen_any(fd, mode); });
}
HF_DOOR int fileno(FILE* stream) noexcept {
  const int ours = number_of_stream(stream);
  return ours >= 0 ? ours : real().fileno(stream);
}
HF_DOOR int fileno_unlocked(FILE* stream) noexcept {
  const int ours = number_of_stream(stream);
  return ours >= 0 ? ours : real().fileno_unlocked(stream);
}
