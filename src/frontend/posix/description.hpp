// An open file description: what dup, fork and exec share (position and flags) on an open file. Each method answers as the call of its
// name does. A Status that carries an errno and no sentence is the program's mistake and is not talked about.
#pragma once
#include <fcntl.h>
#include <sys/uio.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "frontend/posix/open_state.hpp"
#include "frontend/posix/process_file.hpp"

namespace holdfast::frontend::posix {

// Whoever made the memory of an OpenState takes it away.
using StatePtr = std::shared_ptr<OpenState>;

class Description {
 public:
  Description(std::shared_ptr<ProcessFile> file, StatePtr state) : file_(std::move(file)), state_(std::move(state)) {
    if (state_->flags & O_APPEND) file_->will_append();
  }

  std::string path() { return file_->path(); }
  const std::string& file_id() const { return file_->file_id(); }
  int64_t written_ns() const { return file_->written_ns(); }
  std::optional<mode_t> mode() { return file_->mode(); }
  ProcessFile::Identity identity_of_copy() { return file_->identity_of_copy(); }
  bool reads() const { return state_->access != O_WRONLY; }
  bool writes() const { return state_->access != O_RDONLY; }
  uint64_t device() const { return state_->entry_device; }

  // `flags`: RWF_ of preadv2 and pwritev2. An offset of -1 there is the description's own position.
  Result<int64_t> read(std::span<const iovec> into);
  Result<int64_t> read_at(int64_t offset, std::span<const iovec> into);
  Result<int64_t> write(std::span<const iovec> from, int flags = 0);
  Result<int64_t> write_at(int64_t offset, std::span<const iovec> from, int flags = 0);
  Result<int64_t> seek(int64_t offset, int whence);
  Result<uint64_t> size();
  Status truncate(int64_t bytes);
  Status allocate(int mode, int64_t offset, int64_t bytes);
  Status sync();
  // By which descriptor the kernel is asked for a lock; what was written before is in the file then. The kernel may let the caller wait for
  // another process, so asking is his. `locked`: what others wrote before it is seen.
  Result<int> begin_lock();
  void locked();
  // The range of a record lock from the file's beginning, where these rights allow it.
  Result<struct flock> range_of(int command, const struct flock& what);
  // The process's own locks, of fcntl: it loses them when it closes any number of the file.
  void set_locked_by_process() { file_->set_locked_by_process(true); }
  bool is_locked_by_process() const { return file_->is_locked_by_process(); }
  Status give_up_process_locks();
  // Before a fork or an exec: who inherits the description shares its locks. `inherits`: the next image does, too.
  void share_locks(bool inherits);
  bool news_of_others() { return file_->news_of_others(); }
  Status flush_below() { return file_->flush_below(); }
  Status write_through() { return file_->write_through(); }
  bool is_plain() const { return file_->is_plain(); }
  Result<int> native_descriptor(bool to_write = false) { return file_->native_descriptor(to_write); }
  // Of a plain file, around a call of the kernel's on that descriptor. It sees what was written here, and what it changes is seen here.
  Status meet_others() { return file_->meet_others(); }
  // F_GETFL and F_SETFL.
  int flags() const { return int(state_->access | state_->flags.load()); }
  void set_flags(int flags);
  // All that this process wrote has gone to storage.
  void let_go();
  // The last number in this process has gone.
  Status close();

 private:
  Result<int64_t> written(Result<uint64_t> done, uint64_t offset, int flags);
  uint64_t end_of_others() const;
  Status told();
  Result<int> lock_descriptor();

  std::shared_ptr<ProcessFile> file_;
  StatePtr state_;
  uint64_t failures_seen_ = 0;
  std::mutex locks_mutex_;
  raw::Fd locks_;
};

}  // namespace holdfast::frontend::posix
