#include "frontend/posix/open_file.hpp"

#include <cerrno>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "catalog/catalog.hpp"
#include "catalog/user_files.hpp"
#include "layers/protected/protected_file.hpp"

namespace holdfast::frontend::posix {

std::atomic<int> OpenFile::writing_{0};

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

Result<std::shared_ptr<OpenFile>> OpenFile::open(catalog::Located located, Use use, const Settings& settings) {
  if (use.writes) HF_TRY(located.read_only);
  for (;;) {
    std::shared_ptr<OpenFile> file = entry(located.manifest.file_id, located.manifest.path, settings);
    std::lock_guard lock(file->mutex_);
    if (file->gone_) continue;  // its last descriptor has just been closed
    const Status joined = file->join(located, use);
    if (joined.ok()) return file;
    if (file->readers_ + file->writers_ == 0) {
      file->gone_ = true;
      std::lock_guard all(registry().mutex);
      registry().files.erase(file->file_id_);
    }
    return joined;
  }
}

std::shared_ptr<OpenFile> OpenFile::inherit(const std::string& file_id, const std::string& path, Use use, const Settings& settings) {
  for (;;) {
    std::shared_ptr<OpenFile> file = entry(file_id, path, settings);
    std::lock_guard lock(file->mutex_);
    if (file->gone_) continue;
    (use.writes ? file->writers_ : file->readers_) += 1;
    writing_ += use.writes;
    return file;
  }
}

Status OpenFile::join(catalog::Located& located, Use use) {
  // Whoever opens a file sees what others have closed.
  if (stack_) HF_TRY(stack_->sync());
  // A file that is there already is written only when something is written: until then its reader serves.
  else HF_TRY(this->use(std::move(located), use.fresh, use.fresh));
  (use.writes ? writers_ : readers_) += 1;
  writing_ += use.writes;
  return Status();
}

Status OpenFile::use(catalog::Located located, bool to_write, bool fresh) {
  auto file = layers::ProtectedFile::open(std::move(located), {.read = true, .write = to_write, .fresh = fresh}, settings_, *alone_);
  if (!file) return file.status();
  stack_ = std::move(*file);
  stack_writes_ = to_write;
  return Status();
}

Status OpenFile::reach(bool to_write) {
  if (stack_ && (stack_writes_ || !to_write)) return Status();
  stack_.reset();
  auto located = catalog::locate(path_, settings_);
  if (!located) return located.status();
  if (located->manifest.file_id != file_id_)
    return Status(Kind::stale, path_ + ": another file has taken its place while it was open; close it and open it again", ESTALE);
  if (to_write) HF_TRY(located->read_only);
  return use(std::move(*located), to_write, false);
}

Status OpenFile::let_go() {
  Status closed;
  if (stack_ && stack_writes_) closed = stack_->close();
  stack_.reset();
  if (closed.ok()) return closed;
  failure_ = closed;
  ++failures_;
  return closed;
}

void OpenFile::remove_unlinked() {
  for (const std::shared_ptr<OpenFile>& file : all_files()) {
    std::lock_guard lock(file->mutex_);
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
  for (auto& file : held_for_fork()) {
    if (child) {
      // Its ways to storage are the parent's, whose locks they hold: not even to be closed here.
      (void)file->stack_.release();
      file->unlinked_ = false;  // the parent's to remove
    }
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
    status = writers_ == 0 ? stack_->close() : stack_->sync();
    if (writers_ == 0) stack_.reset();
  }
  writing_ -= writes;
  if (readers_ + writers_ > 0) return status;
  stack_.reset();
  gone_ = true;
  {
    std::lock_guard all(registry().mutex);
    registry().files.erase(file_id_);
  }
  if (unlinked_) (void)catalog::remove(path_, settings_);
  return status;
}

std::string OpenFile::path() {
  std::lock_guard lock(mutex_);
  return path_;
}

Result<uint64_t> OpenFile::read(uint64_t offset, std::span<const iovec> into) {
  std::lock_guard lock(mutex_);
  HF_TRY(reach(false));
  const uint64_t end = stack_->size();
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

Result<uint64_t> OpenFile::write_here(uint64_t offset, std::span<const iovec> from) {
  uint64_t done = 0;
  for (const iovec& piece : from) {
    if (piece.iov_len == 0) continue;
    const Extent extent{offset + done, piece.iov_len};
    const Status written = stack_->write({&extent, 1}, {static_cast<const std::byte*>(piece.iov_base), piece.iov_len});
    if (!written.ok() && done == 0) return written;
    if (!written.ok()) break;
    done += piece.iov_len;
  }
  return done;
}

Result<uint64_t> OpenFile::write(uint64_t offset, std::span<const iovec> from) {
  std::lock_guard lock(mutex_);
  HF_TRY(reach(true));
  return write_here(offset, from);
}

Result<uint64_t> OpenFile::append(uint64_t at_least, std::span<const iovec> from, uint64_t& offset) {
  std::lock_guard lock(mutex_);
  HF_TRY(reach(true));
  offset = std::max(at_least, stack_->size());
  return write_here(offset, from);
}

Result<uint64_t> OpenFile::size() {
  std::lock_guard lock(mutex_);
  HF_TRY(reach(false));
  return stack_->size();
}

Status OpenFile::set_size(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  HF_TRY(reach(true));
  return stack_->set_size(bytes);
}

Status OpenFile::sync() {
  std::lock_guard lock(mutex_);
  return stack_ && stack_writes_ ? stack_->sync() : Status();
}

Status OpenFile::rename(const std::string& to) {
  std::lock_guard lock(mutex_);
  (void)let_go();  // a failure is told to the descriptors
  HF_TRY(catalog::rename(path_, to, settings_));
  path_ = catalog::absolute_path(to);
  return Status();
}

Status OpenFile::unlink() {
  std::lock_guard lock(mutex_);
  (void)let_go();
  const std::string hidden = fmt::format("{}/.holdfast-removed.{}", catalog::parent_of(path_), file_id_);
  HF_TRY(catalog::rename(path_, hidden, settings_));
  path_ = hidden;
  unlinked_ = true;
  return Status();
}

Status OpenFile::untold(uint64_t& seen) {
  std::lock_guard lock(mutex_);
  if (seen == failures_) return Status();
  seen = failures_;
  return failure_;
}

}  // namespace holdfast::frontend::posix
