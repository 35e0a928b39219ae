#include "frontend/posix/description.hpp"

#include <linux/falloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "redundant/twins/replica.hpp"

namespace holdfast::frontend::posix {

namespace {

constexpr uint64_t most_bytes_of_a_call = 0x7ffff000;  // as the kernel
constexpr uint64_t largest_file = std::numeric_limits<int64_t>::max();
constexpr size_t most_pieces = 1024;  // IOV_MAX
constexpr uint32_t settable = O_APPEND | O_ASYNC | O_DIRECT | O_NOATIME | O_NONBLOCK;

Status mistake(int error) { return Status(Kind::invalid, "", error); }

// What stands behind the range moves. Who made the call once more could not know whether it has moved.
void warn_of_moved_range(const std::string& path, int mode) {
  redundant::Replica* const replica = redundant::Replica::now();
  if (!replica) return;
  const char* const flag = mode & FALLOC_FL_INSERT_RANGE ? "FALLOC_FL_INSERT_RANGE" : "FALLOC_FL_COLLAPSE_RANGE";
  replica->warn(fmt::format("{}: fallocate with {} is refused: after a loss nobody could see whether it was done", path, flag));
}

uint64_t bytes_in(std::span<const iovec> pieces) {
  uint64_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

// As the kernel: a call moves at most so many bytes. `room` holds the shortened list where one is needed.
Result<std::span<const iovec>> bounded(std::span<const iovec> pieces, std::vector<iovec>& room) {
  if (pieces.size() > most_pieces) return mistake(EINVAL);
  uint64_t bytes = 0;
  for (const iovec& piece : pieces) {
    bytes += piece.iov_len;
    if (piece.iov_len > largest_file || bytes > largest_file) return mistake(EINVAL);
    if (!piece.iov_base && piece.iov_len > 0) return mistake(EFAULT);
  }
  if (bytes <= most_bytes_of_a_call) return pieces;
  uint64_t left = most_bytes_of_a_call;
  for (iovec piece : pieces) {
    piece.iov_len = std::min<uint64_t>(piece.iov_len, left);
    left -= piece.iov_len;
    room.push_back(piece);
  }
  return std::span<const iovec>(room);
}

}  // namespace

Status Description::told() { return file_->untold(failures_seen_); }

Result<int64_t> Description::read(std::span<const iovec> into) {
  const PositionHeld held(*state_);
  auto got = read_at(int64_t(state_->position), into);
  if (got) state_->position += uint64_t(*got);
  return got;
}

Result<int64_t> Description::read_at(int64_t offset, std::span<const iovec> into) {
  if (offset < 0) return mistake(EINVAL);
  if (!reads()) return mistake(EBADF);
  std::vector<iovec> room;
  auto pieces = bounded(into, room);
  if (!pieces) return pieces.status();
  auto got = file_->read(uint64_t(offset), *pieces);
  if (!got) return got.status();
  return int64_t(*got);
}

// What is known of the end of the file by what a process that shares the description has written, and perhaps not yet synced.
uint64_t Description::end_of_others() const {
  const int32_t writer = state_->writer;
  return writer == 0 || writer == ProcessFile::process() ? 0 : state_->end.load();
}

void Description::let_go() {
  int32_t me = ProcessFile::process();
  state_->writer.compare_exchange_strong(me, 0);
}

Result<int64_t> Description::written(Result<uint64_t> done, uint64_t offset, int flags) {
  if (!done) return done.status();
  if (*done) {
    state_->end = offset + *done;
    state_->writer = ProcessFile::process();
  }
  const bool at_once = (state_->flags & (O_SYNC | O_DSYNC)) || (flags & (RWF_SYNC | RWF_DSYNC));
  if (at_once && *done) HF_TRY(file_->sync());
  return int64_t(*done);
}

Result<int64_t> Description::write(std::span<const iovec> from, int flags) {
  const PositionHeld held(*state_);
  if (!(state_->flags & O_APPEND) && !(flags & RWF_APPEND)) {
    auto done = write_at(int64_t(state_->position), from, flags);
    if (done) state_->position += uint64_t(*done);
    return done;
  }
  if (!writes()) return mistake(EBADF);
  HF_TRY(told());
  std::vector<iovec> room;
  auto pieces = bounded(from, room);
  if (!pieces) return pieces.status();
  if (bytes_in(*pieces) == 0) return int64_t(0);
  uint64_t offset = 0;
  auto done = file_->append(end_of_others(), *pieces, offset);
  if (done) state_->position = offset + *done;
  return written(std::move(done), offset, flags);
}

// With O_APPEND, pwrite appends as well: Linux's way.
Result<int64_t> Description::write_at(int64_t offset, std::span<const iovec> from, int flags) {
  if (offset < 0) return mistake(EINVAL);
  if (!writes()) return mistake(EBADF);
  HF_TRY(told());
  std::vector<iovec> room;
  auto pieces = bounded(from, room);
  if (!pieces) return pieces.status();
  const uint64_t bytes = bytes_in(*pieces);
  if (bytes == 0) return int64_t(0);
  uint64_t at = uint64_t(offset);
  if ((state_->flags & O_APPEND) || (flags & RWF_APPEND)) {
    auto done = file_->append(end_of_others(), *pieces, at);
    return written(std::move(done), at, flags);
  }
  if (at > largest_file - bytes) return mistake(EFBIG);
  return written(file_->write(at, *pieces), at, flags);
}

Result<int64_t> Description::seek(int64_t offset, int whence) {
  const PositionHeld held(*state_);
  uint64_t end = 0;
  if (whence == SEEK_END) {
    auto size = this->size();
    if (!size) return size.status();
    end = *size;
  }
  int64_t base = 0;
  switch (whence) {
    case SEEK_SET: break;
    case SEEK_CUR: base = int64_t(state_->position); break;
    case SEEK_END: base = int64_t(end); break;
    case SEEK_DATA:
    case SEEK_HOLE: {
      auto found = file_->next(whence == SEEK_DATA ? FileLayer::Stretch::data : FileLayer::Stretch::hole, uint64_t(offset));
      if (!found) return found.status();
      state_->position = *found;
      return int64_t(*found);
    }
    default: return mistake(EINVAL);
  }
  int64_t to = 0;
  if (__builtin_add_overflow(base, offset, &to) || to < 0) return mistake(EINVAL);
  state_->position = uint64_t(to);
  return to;
}

Result<uint64_t> Description::size() { return file_->size(); }

Status Description::truncate(int64_t bytes) {
  if (bytes < 0 || !writes()) return mistake(EINVAL);
  HF_TRY(told());
  return file_->set_size(uint64_t(bytes));
}

Status Description::allocate(int mode, int64_t offset, int64_t bytes) {
  if (offset < 0 || bytes <= 0) return mistake(EINVAL);
  if (!writes()) return mistake(EBADF);
  if (mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE)) warn_of_moved_range(path(), mode);
  if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) return Status(Kind::unsupported, "", EOPNOTSUPP);
  const bool punch = mode & FALLOC_FL_PUNCH_HOLE, zero = mode & FALLOC_FL_ZERO_RANGE, keep = mode & FALLOC_FL_KEEP_SIZE;
  if ((punch && zero) || (punch && !keep)) return Status(Kind::unsupported, "", EOPNOTSUPP);
  int64_t end = 0;
  if (__builtin_add_overflow(offset, bytes, &end)) return mistake(EFBIG);
  HF_TRY(told());
  return file_->allocate(mode, {uint64_t(offset), uint64_t(bytes)});
}

Status Description::sync() {
  HF_TRY(told());
  return file_->sync();
}

Result<int> Description::lock_descriptor() {
  std::lock_guard lock(locks_mutex_);
  if (!locks_) {
    auto found = file_->lock_descriptor(state_->locks - 1);
    if (!found) return found.status();
    locks_ = std::move(*found);
  }
  return locks_.get();
}

Result<int> Description::begin_lock() {
  HF_TRY(file_->meet_others());
  let_go();
  return lock_descriptor();
}

void Description::locked() {
  (void)file_->meet_others();  // what failed is told by the next call that writes
  let_go();
}

// The kernel's descriptor knows nothing of our position, nor the lock file of our size.
Result<struct flock> Description::range_of(int command, const struct flock& what) {
  const bool asks = command == F_GETLK || command == F_OFD_GETLK;
  const bool may = asks || what.l_type == F_UNLCK || (what.l_type == F_WRLCK ? writes() : reads());
  if (!may) return mistake(EBADF);
  struct flock there = what;
  there.l_whence = SEEK_SET;
  if (what.l_whence == SEEK_CUR) {
    const PositionHeld held(*state_);
    there.l_start += int64_t(state_->position);
  } else if (what.l_whence == SEEK_END) {
    auto end = size();
    if (!end) return end.status();
    there.l_start += int64_t(*end);
  } else if (what.l_whence != SEEK_SET) {
    return mistake(EINVAL);
  }
  return there;
}

Status Description::give_up_process_locks() {
  auto fd = begin_lock();
  if (!fd) return fd.status();
  struct flock all {};
  all.l_type = F_UNLCK;
  (void)raw::fcntl_lock(*fd, F_SETLK, &all);
  file_->set_locked_by_process(false);
  return Status();
}

void Description::share_locks(bool inherits) {
  auto fd = lock_descriptor();
  if (!fd) return;  // said when somebody locks
  (void)raw::fcntl(*fd, F_SETFD, inherits ? 0 : FD_CLOEXEC);
  state_->locks = inherits ? *fd + 1 : 0;
}

void Description::set_flags(int flags) {
  state_->flags = (state_->flags & ~settable) | (uint32_t(flags) & settable);
  if (flags & O_APPEND) file_->will_append();
}

Status Description::close() {
  const Status before = told();
  const Status status = file_->leave(writes());
  let_go();
  return before.ok() ? status : before;
}

}  // namespace holdfast::frontend::posix
