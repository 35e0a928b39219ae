#include "frontend/posix/open_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/own_numbers.hpp"
#include "catalog/catalog.hpp"
#include "catalog/hidden_names.hpp"
#include "catalog/lock_file.hpp"
#include "catalog/path_keeper.hpp"
#include "catalog/user_files.hpp"
#include "engine/protected_file.hpp"
#include "frontend/posix/losses.hpp"
#include "layers/plain/plain_file.hpp"

namespace holdfast::frontend::posix {

std::atomic<int> OpenFile::writing_{0}, OpenFile::plain_{0};
std::atomic<int32_t> OpenFile::process_{0};

int32_t OpenFile::process() {
  int32_t known = process_.load(std::memory_order_relaxed);
  if (known == 0) process_ = known = getpid();
  return known;
}

namespace {

// Order of locks: a file's, then the registry's.
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<OpenFile>> files;
};

// Never destroyed: other libraries' destructors may still write.
Registry& registry() {
  static auto* one = new Registry;
  return *one;
}

std::vector<std::shared_ptr<OpenFile>> all_files() {
  std::lock_guard lock(registry().mutex);
  std::vector<std::shared_ptr<OpenFile>> files;
  for (auto& [id, file] : registry().files) files.push_back(file);
  return files;
}

std::vector<std::shared_ptr<OpenFile>>& held_for_fork() {
  static auto* files = new std::vector<std::shared_ptr<OpenFile>>;
  return *files;
}

}  // namespace

std::shared_ptr<OpenFile> OpenFile::entry(const std::string& file_id, const std::string& path, const Settings& settings) {
  std::lock_guard lock(registry().mutex);
  std::shared_ptr<OpenFile>& file = registry().files[file_id];
  if (!file) file.reset(new OpenFile(file_id, path, settings));
  return file;
}

std::shared_ptr<OpenFile> OpenFile::find(const std::string& file_id) {
  std::lock_guard lock(registry().mutex);
  auto found = registry().files.find(file_id);
  return found == registry().files.end() ? nullptr : found->second;
}

// Under the file's lock: `join` makes the caller one of those who have it open, or says why not.
template <class Join>
Result<std::shared_ptr<OpenFile>> OpenFile::joined(const std::string& file_id, const std::string& path, const Settings& settings, Join join) {
  for (;;) {
    std::shared_ptr<OpenFile> file = entry(file_id, path, settings);
    std::lock_guard lock(file->mutex_);
    if (file->gone_) continue;  // its last descriptor has just been closed
    if (file->is_plain() && file->readers_ + file->writers_ == 0) ++plain_;
    const Status status = join(*file);
    if (status.ok()) return file;
    file->forget_if_unused();
    return status;
  }
}

void OpenFile::count(Use use) {
  (use.writes ? writers_ : readers_) += 1;
  writing_ += use.writes;
  if (buffers_) show_presence(use.writes);
}

Result<std::shared_ptr<OpenFile>> OpenFile::open(catalog::Located located, Use use, const Settings& settings) {
  if (use.writes) HF_TRY(located.read_only);
  const std::string file_id = located.manifest.file_id, path = located.manifest.path;
  return joined(file_id, path, settings, [&](OpenFile& file) { return file.join(located, use); });
}

void OpenFile::forget_if_unused() {
  if (readers_ + writers_ > 0) return;
  gone_ = true;
  if (is_plain()) --plain_;
  std::lock_guard all(registry().mutex);
  registry().files.erase(file_id_);
}

std::shared_ptr<OpenFile> OpenFile::inherit(const std::string& file_id, const std::string& path, Use use, const Settings& settings) {
  return *joined(file_id, path, settings, [&](OpenFile& file) {
    file.shared_ = true;
    if (use.inherited >= 0) file.inherited_ = use.inherited;
    file.count(use);
    return Status();
  });
}

Status OpenFile::join(catalog::Located& located, Use use) {
  // Whoever opens a file sees what others have closed.
  HF_TRY(place_appended(true));
  if (stack_) HF_TRY(heard(stack_->sync()));
  // A file that is there already is written only when something is written: until then its reader serves.
  else HF_TRY(this->use(std::move(located), use.fresh, use.fresh));
  count(use);
  follow_directory();
  return Status();
}

Status OpenFile::use(catalog::Located located, bool to_write, bool fresh) {
  auto file = engine::ProtectedFile::open(std::move(located), {.read = true, .write = to_write, .fresh = fresh}, settings_, *alone_);
  if (file.status().kind() == Kind::lost && catalog::kind_of(path_) == catalog::PathKind::absent)
    return Status(Kind::not_found, path_ + " was removed while it was opened", ENOENT);
  if (!file) return file.status();
  const uint64_t row_bytes = (*file)->located().manifest.geometry.row_bytes();
  protected_ = file->get();
  stack_up(std::move(*file), row_bytes, true, to_write);
  stack_writes_ = to_write;
  return Status();
}

void OpenFile::stack_up(std::unique_ptr<FileLayer> file, uint64_t row_bytes, bool reads, bool writes) {
  stack_ = std::move(file);
  buffers_ = nullptr;
  if (settings_.buffers == 0 || through_) return;
  show_presence(writes);
  const layers::BufferPlan plan{.buffers = settings_.buffers,
                                .bytes = settings_.buffer_size,
                                .align = row_bytes,
                                .read_ahead = reads,
                                .flush = settings_.buffer_flush == "needed" ? layers::BufferPlan::Flush::when_needed
                                                                            : layers::BufferPlan::Flush::when_full,
                                .flush_after_ms = settings_.buffer_flush_ms,
                                .sync_after = !is_plain()};
  auto buffered = layers::BufferedFile::make(std::move(stack_), plan, layers::background_thread());
  buffers_ = buffered.get();
  buffer_failures_ = 0;
  stack_ = std::move(buffered);
}

// The path is the one under which the file was opened, or what it has become by renaming a directory above it.
void OpenFile::follow_directory() {
  if (is_plain()) return;
  if (!directory_) directory_ = catalog::FollowedDirectory(catalog::parent_of(path_));
  path_ = directory_.path_of(path_);
}

Status OpenFile::reach(bool to_write) {
  if (stack_ && (stack_writes_ || !to_write)) return Status();
  drop_stack();
  if (is_plain()) return reach_plain(to_write);
  follow_directory();
  auto located = catalog::locate(path_, settings_);
  const auto elsewhere = [&] { return located ? located->manifest.file_id != file_id_ : located.status().kind() == Kind::not_found; };
  if (elsewhere()) {  // another process may have renamed it
    const std::string now = catalog::path_by_id(catalog::parent_of(path_), file_id_);
    if (!now.empty()) located = catalog::locate(path_ = now, settings_);
  }
  if (!located) return located.status();
  if (elsewhere()) return Status(Kind::stale, path_ + ": another file has taken its place while it was open; close it and open it again", ESTALE);
  if (to_write) HF_TRY(located->read_only);
  return use(std::move(*located), to_write, false);
}

Status OpenFile::let_go() {
  Status closed = place_appended(!settings_.fast_close);
  if (stack_ && stack_writes_) {
    const Status status = stored(stack_->close());
    if (closed.ok()) closed = status;
  }
  drop_stack();
  if (closed.ok()) return closed;
  failure_ = closed;
  ++failures_;
  return closed;
}

void OpenFile::remove_unlinked() {
  for (const std::shared_ptr<OpenFile>& file : all_files()) {
    std::lock_guard lock(file->mutex_);
    file->follow_directory();
    if (file->unlinked_) (void)catalog::remove(file->path_, file->settings_);
    file->unlinked_ = false;
  }
}

Status OpenFile::let_go_all() {
  Status first;
  for (const std::shared_ptr<OpenFile>& file : all_files()) {
    std::lock_guard lock(file->mutex_);
    if (file->writers_ == 0) continue;  // of those that only read, too: others may write through the descriptors that they share
    const Status status = file->let_go();
    if (first.ok()) first = status;
  }
  return first;
}

void OpenFile::before_fork() {
  (void)let_go_all();  // what failed is told to the descriptors
  for (;;) {
    std::vector<std::shared_ptr<OpenFile>>& held = held_for_fork();
    held = all_files();
    for (auto& file : held) file->mutex_.lock();
    registry().mutex.lock();
    if (registry().files.size() == held.size()) return;
    registry().mutex.unlock();  // one was opened or closed in between
    for (auto& file : held) file->mutex_.unlock();
  }
}

void OpenFile::after_fork(bool child) {
  if (child) {
    process_ = getpid();
    if (any_loss()) forget_losses();
  }
  for (auto& file : held_for_fork()) {
    if (child) {
      // Its ways to storage are the parent's, whose locks they hold: not even to be closed here.
      (void)file->stack_.release();
      file->buffers_ = nullptr;
      file->protected_ = nullptr;
      file->appended_.clear();  // the parent's to write
      file->unlinked_ = false;  // the parent's to remove
      file->locked_by_process_ = false;
    }
    file->shared_ = true;
    file->mutex_.unlock();
  }
  registry().mutex.unlock();
  held_for_fork().clear();
}

Status OpenFile::leave(bool writes) {
  std::lock_guard lock(mutex_);
  (writes ? writers_ : readers_) -= 1;
  Status status;
  if (writes && stack_ && stack_writes_) {
    // A failure is the answer of this close, and of nobody's else.
    // A plain file is flushed by its last writer as close(2) would, which is no fsync.
    status = place_appended(writers_ > 0 || !settings_.fast_close);
    const Status rest = writers_ == 0 ? stored(stack_->close()) : is_plain() ? buffers_flushed() : stored(stack_->sync());
    if (status.ok()) status = rest;
    if (writers_ == 0) drop_stack();
    if (writers_ == 0 && !status.ok()) note_loss(path_, status);
  }
  writing_ -= writes;
  if (readers_ + writers_ > 0) return status;
  drop_stack();
  forget_if_unused();
  follow_directory();
  if (unlinked_) (void)catalog::remove(path_, settings_);
  return status;
}

std::string OpenFile::path() {
  std::lock_guard lock(mutex_);
  follow_directory();
  return path_;
}

Result<uint64_t> OpenFile::read(uint64_t offset, std::span<const iovec> into) {
  std::lock_guard lock(mutex_);
  HF_TRY(reach(false));
  mind_others();
  HF_TRY(place_appended(false));
  const uint64_t end = is_plain() ? UINT64_MAX : stack_->size();  // others may be making a plain file longer
  uint64_t done = 0;
  for (const iovec& piece : into) {
    const uint64_t at = offset + done;
    if (at >= end) break;
    const Extent extent{at, std::min(uint64_t(piece.iov_len), end - at)};
    auto got = stack_->read({&extent, 1}, {static_cast<std::byte*>(piece.iov_base), size_t(extent.length)});
    if (!got && done == 0) return got.status();
    if (!got) break;
    done += *got;
    if (*got < piece.iov_len) break;
  }
  return done;
}

namespace {

struct Mapped {
  std::mutex mutex;
  std::set<std::string> ids;
};
Mapped& mapped() {
  static auto* one = new Mapped;
  return *one;
}

}  // namespace

void OpenFile::note_mapped(const std::string& plain_id) {
  std::lock_guard lock(mapped().mutex);
  mapped().ids.insert(plain_id);
}

bool OpenFile::was_mapped(const std::string& plain_id) {
  std::lock_guard lock(mapped().mutex);
  return mapped().ids.contains(plain_id);
}

std::string OpenFile::plain_id(uint64_t device, uint64_t inode) { return fmt::format("{}{:x}-{:x}", plain_prefix, device, inode); }

namespace {

bool allows(int fd, int access) {
  const int has = raw::fcntl(fd, F_GETFL) & O_ACCMODE;
  return has == O_RDWR || has == access;
}

}  // namespace

Result<std::shared_ptr<OpenFile>> OpenFile::open_plain(raw::Fd native, const std::string& path, Use use, const Settings& settings) {
  struct stat state {};
  if (raw::fstat(native.get(), &state) != 0) return Status::from_errno(errno, path);
  return joined(plain_id(state.st_dev, state.st_ino), path, settings, [&](OpenFile& file) { return file.join_plain(native, use); });
}

Status OpenFile::join_plain(raw::Fd& native, Use use) {
  through_ |= was_mapped(file_id_);
  const int access = use.writes ? O_WRONLY : O_RDONLY;
  if (!native_ || !allows(native_.get(), access)) {
    raw::Fd found = layers::with_all_rights(std::move(native));
    if (native_ && !allows(found.get(), access == O_WRONLY ? O_RDONLY : O_WRONLY)) {
      through_ = true;
      (void)let_go();
      return Status(Kind::unsupported, path_ + ": is open with other rights already");
    }
    HF_TRY(let_go());
    native_ = std::move(found);
  } else {
    HF_TRY(show_and_look());
  }
  count(use);
  return Status();
}

void OpenFile::hand_over(bool yes) {
  if (!any_plain()) return;
  std::lock_guard lock(registry().mutex);
  for (auto& [id, file] : registry().files)
    if (file->native_) (void)raw::fcntl(file->native_.get(), F_SETFD, yes ? 0 : FD_CLOEXEC);
}

// The descriptor that the process before an exec had of the file.
raw::Fd OpenFile::handed_over() const {
  constexpr int most = 1024;
  const int begin = raw::own_numbers_begin();
  for (int fd = begin; fd < begin + most; ++fd) {
    struct stat state {};
    if (raw::is_own(unsigned(fd)) || raw::fstat(fd, &state) != 0 || !S_ISREG(state.st_mode)) continue;
    if (plain_id(state.st_dev, state.st_ino) != file_id_) continue;
    (void)raw::fcntl(fd, F_SETFD, FD_CLOEXEC);
    return raw::Fd(fd);
  }
  return {};
}

Status OpenFile::reach_plain(bool to_write) {
  if (!native_ || (to_write && !allows(native_.get(), O_WRONLY))) {  // after an exec
    struct stat state {};
    const bool holds = inherited_ >= 0 && raw::fstat(inherited_, &state) == 0 && plain_id(state.st_dev, state.st_ino) == file_id_;
    raw::Fd found = handed_over();
    if (!found || (to_write && !allows(found.get(), O_WRONLY)))
      found = layers::open_again(holds ? fmt::format("/proc/self/fd/{}", inherited_) : path_, to_write || writers_ > 0);
    if (!found || raw::fstat(found.get(), &state) != 0) return Status::from_errno(errno, path_);
    if (plain_id(state.st_dev, state.st_ino) != file_id_)
      return Status(Kind::stale, path_ + ": another file has taken its place while it was open; close it and open it again", ESTALE);
    native_ = std::move(found);
  }
  stack_up(layers::plain_file(native_.get(), path_), 1, allows(native_.get(), O_RDONLY), to_write || writers_ > 0);
  stack_writes_ = allows(native_.get(), O_WRONLY);
  return Status();
}

void OpenFile::drop_stack() {
  stack_.reset();
  buffers_ = nullptr;
  protected_ = nullptr;
}

// A failure that is this call's answer is not told a second time.
Status OpenFile::heard(const Status& status) {
  if (!status.ok() && buffers_) (void)buffers_->failure_since(buffer_failures_);
  return status;
}

// Between processes a file is as one process left it at the last close; two that have it open at once, one of them a writer, are
// better served without buffers.
void OpenFile::show_presence(bool writes) {
  if (presence_ && (present_as_writer_ || !writes)) return;
  presence_.reset();  // or it would be met
  presence_ = std::make_unique<Presence>(file_id_, writes);
  present_as_writer_ = writes;
}

void OpenFile::mind_others() {
  if (!buffers_ || through_ || !presence_ || !presence_->met_another()) return;
  through_ = true;
  news_ = true;
  if (const Status written = buffers_->write_through(); !written.ok()) {
    failure_ = written;
    ++failures_;
    (void)heard(written);
  }
}

Status OpenFile::buffers_flushed() { return buffers_ ? heard(buffers_->flush()) : Status(); }

Status OpenFile::show_and_look() { return buffers_ ? heard(buffers_->forget()) : Status(); }

Result<raw::Fd> OpenFile::lock_descriptor(int inherited) {
  std::lock_guard lock(mutex_);
  if (is_plain()) {
    HF_TRY(reach(false));
    struct stat there {};
    if (inherited >= 0 && raw::fstat(inherited, &there) == 0 && plain_id(there.st_dev, there.st_ino) == file_id_) return raw::Fd(inherited);
    raw::Fd own = layers::open_again(fmt::format("/proc/self/fd/{}", native_.get()), allows(native_.get(), O_WRONLY));
    if (!own) return Status::from_errno(errno, path_);
    return own;
  }
  follow_directory();
  if (inherited >= 0 && catalog::is_lock_file(inherited, path_)) return raw::Fd(inherited);
  auto own = catalog::open_lock_file(path_);
  if (!own) return own.status();
  return raw::Fd(*own);
}

// A protected file is found anew at the next use. What could not be written is told to the descriptors.
Status OpenFile::meet_others() {
  std::lock_guard lock(mutex_);
  if (is_plain()) return show_and_look();
  (void)let_go();
  return Status();
}

Status OpenFile::allocate(int mode, uint64_t offset, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  HF_TRY(reach(true));
  HF_TRY(show_and_look());
  if (layers::allocate_in(native_.get(), mode, offset, bytes) != 0) return Status(Kind::invalid, "", errno);
  return show_and_look();
}

Result<int> OpenFile::native_descriptor(bool to_write) {
  std::lock_guard lock(mutex_);
  HF_TRY(reach(to_write));
  return native_.get();
}

Result<int64_t> OpenFile::next_part(int64_t offset, int whence) {
  std::lock_guard lock(mutex_);
  HF_TRY(reach(false));
  HF_TRY(buffers_flushed());
  const off_t found = raw::lseek(native_.get(), offset, whence);  // nobody uses its position
  if (found < 0) return Status(Kind::invalid, "", errno);
  return found;
}

Status OpenFile::write_through() {
  std::lock_guard lock(mutex_);
  through_ = true;
  return buffers_ ? heard(buffers_->write_through()) : Status();
}

// By the clock that the kernel has for the times of files.
void OpenFile::note_written() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  constexpr int64_t ns_of_s = 1000000000;
  written_ns_.store(now.tv_sec * ns_of_s + now.tv_nsec, std::memory_order_relaxed);
}

Result<uint64_t> OpenFile::write_here(uint64_t offset, std::span<const iovec> from) {
  uint64_t done = 0;
  changed_ = !is_plain();
  note_written();
  for (const iovec& piece : from) {
    if (piece.iov_len == 0) continue;
    const Extent extent{offset + done, piece.iov_len};
    const Status written = heard(stack_->write({&extent, 1}, {static_cast<const std::byte*>(piece.iov_base), piece.iov_len}));
    if (!written.ok() && done == 0) return written;
    if (!written.ok()) break;
    done += piece.iov_len;
  }
  return done;
}

Result<uint64_t> OpenFile::write(uint64_t offset, std::span<const iovec> from) {
  std::lock_guard lock(mutex_);
  HF_TRY(reach(true));
  mind_others();
  HF_TRY(place_appended(false));
  return write_here(offset, from);
}

Result<uint64_t> OpenFile::append(uint64_t at_least, std::span<const iovec> from, uint64_t& offset) {
  std::lock_guard lock(mutex_);
  HF_TRY(reach(true));
  if (is_plain()) return append_natively(from, offset);
  offset = std::max(at_least, end());
  return append_protected(from);
}

// Other openers append too, and only at a commit, under the file's lock, is it known where their bytes end. So what was appended is kept until
// somebody asks for more than the end of the file, and gets its place then. Processes that share a descriptor see
// each other's appends at once: there each one is a commit.
Result<uint64_t> OpenFile::append_protected(std::span<const iovec> from) {
  const size_t before = appended_.size();
  for (const iovec& piece : from) {
    const auto* bytes = static_cast<const std::byte*>(piece.iov_base);
    appended_.insert(appended_.end(), bytes, bytes + piece.iov_len);
  }
  const uint64_t done = appended_.size() - before;
  changed_ = true;
  note_written();
  if (shared_ || appended_.size() >= settings_.buffer_bytes) HF_TRY(place_appended(false));
  return done;
}

// What cannot be placed is dropped: who asked is told, once.
Status OpenFile::place_appended(bool durable) {
  if (appended_.empty()) return Status();
  Bytes bytes = std::exchange(appended_, Bytes());
  HF_TRY(show_and_look());
  HF_TRY(protected_->append(bytes, durable).status());
  bytes.clear();
  appended_ = std::move(bytes);  // its memory, for the next ones
  return show_and_look();
}

// Several processes may append to one file, and each one's bytes must come behind all others': only the kernel can see to that.
Result<uint64_t> OpenFile::append_natively(std::span<const iovec> from, uint64_t& offset) {
  HF_TRY(show_and_look());
  const int64_t done = layers::append_to(native_.get(), from);
  if (done < 0) return Status(Kind::invalid, "", errno);
  HF_TRY(show_and_look());
  offset = stack_->size() - uint64_t(done);
  return uint64_t(done);
}

Result<uint64_t> OpenFile::size() {
  std::lock_guard lock(mutex_);
  HF_TRY(reach(false));
  mind_others();
  return end();
}

OpenFile::Identity OpenFile::identity_of_copy() {
  std::lock_guard lock(mutex_);
  if (copy_) return *copy_;
  if (!reach(false).ok() || !protected_) return {};
  const catalog::Located& located = protected_->located();
  std::vector<bool> lost(located.members.size());
  for (const int member : protected_->lost_members()) lost[size_t(member)] = true;
  const auto state = catalog::look_at_copy(located.manifest, lost, settings_.deadline_ms);
  copy_ = state ? Identity{state->device, state->inode} : Identity();  // a target that hangs is waited for once
  return *copy_;
}

Status OpenFile::set_size(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  HF_TRY(reach(true));
  HF_TRY(place_appended(false));
  changed_ = !is_plain();
  note_written();
  return heard(stack_->set_size(bytes));
}

Status OpenFile::sync() {
  std::lock_guard lock(mutex_);
  HF_TRY(place_appended(true));
  return stack_ && stack_writes_ ? heard(stored(stack_->sync())) : Status();
}

Status OpenFile::settle() {
  std::lock_guard lock(mutex_);
  HF_TRY(place_appended(true));
  if (!stack_ || !stack_writes_) return Status();
  const Status status = is_plain() ? buffers_flushed() : heard(stored(stack_->sync()));
  if (status.ok()) written_ns_ = 0;
  return status;
}

// Of a file that is protected: what stands at its path need not have been touched.
Status OpenFile::stored(const Status& status) {
  if (changed_ && status.ok()) catalog::show_change(path_);
  if (status.ok()) written_ns_ = 0;
  changed_ &= !status.ok();
  return status;
}

Status OpenFile::move(const std::string& to) {
  (void)let_go();  // a failure is told to the descriptors
  follow_directory();
  HF_TRY(catalog::rename(path_, to, settings_));
  path_ = catalog::absolute_path(to);
  directory_ = {};
  follow_directory();
  return Status();
}

Status OpenFile::rename(const std::string& to) {
  std::lock_guard lock(mutex_);
  HF_TRY(move(to));
  unlinked_ = false;
  held_.reset();
  return Status();
}

std::string OpenFile::hide_in(const std::string& directory) const { return directory + "/" + catalog::removed_name(file_id_); }

Status OpenFile::unlink() {
  std::lock_guard lock(mutex_);
  follow_directory();
  HF_TRY(move(hide_in(catalog::parent_of(path_))));
  held_ = raw::out_of_the_way(raw::Fd(catalog::hold_removed(path_)));
  unlinked_ = true;
  return Status();
}

void OpenFile::leave_directory(const std::string& absolute) {
  for (const std::shared_ptr<OpenFile>& file : all_files()) {
    std::lock_guard lock(file->mutex_);
    if (!file->unlinked_) continue;
    file->follow_directory();
    if (catalog::parent_of(file->path_) == absolute) (void)file->move(file->hide_in(catalog::parent_of(absolute)));  // else rmdir's error stands
  }
}

Status OpenFile::untold(uint64_t& seen) {
  std::lock_guard lock(mutex_);
  if (const Status delayed = buffers_ ? buffers_->failure_since(buffer_failures_) : Status(); !delayed.ok()) {
    failure_ = delayed;
    ++failures_;
  }
  if (seen == failures_) return Status();
  seen = failures_;
  return failure_;
}

}  // namespace holdfast::frontend::posix
