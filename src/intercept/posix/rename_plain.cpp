#include "intercept/posix/rename_plain.hpp"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "base/own_numbers.hpp"
#include "base/raw_syscalls.hpp"
#include "catalog/catalog.hpp"
#include "catalog/hidden_names.hpp"
#include "catalog/user_files.hpp"
#include "frontend/posix/conversion.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/open.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/settings.hpp"

namespace holdfast::intercept::posix {

namespace {

namespace posix_files = frontend::posix;

// By a lease, which the kernel gives to those who read where nobody writes; else this process's own descriptors are looked through.
bool is_written_here(const struct stat& file) {
  const auto numbers = catalog::list_directory("/proc/self/fd");
  if (!numbers) return false;
  for (const std::string& name : *numbers) {
    const int fd = std::atoi(name.c_str());
    struct stat state;
    const int flags = raw::fcntl(fd, F_GETFL);
    const bool writes = flags >= 0 && !(flags & O_PATH) && (flags & O_ACCMODE) != O_RDONLY;
    if (writes && raw::fstat(fd, &state) == 0 && state.st_ino == file.st_ino && state.st_dev == file.st_dev) return true;
  }
  return false;
}
bool is_written(int fd, const struct stat& file) {
  raw::fcntl(fd, F_SETSIG, SIGURG);  // who opens it while the lease is held must not end this process by it
  if (raw::fcntl(fd, F_SETLEASE, F_RDLCK) == 0) return raw::fcntl(fd, F_SETLEASE, F_UNLCK), false;
  return errno == EAGAIN || is_written_here(file);
}

// Another process is in the middle of a commit of the file, which is over soon.
template <class Rename>
Status when_free(Rename rename) {
  constexpr int most_times = 100;
  constexpr std::chrono::milliseconds pause(20);
  for (int i = 0;; ++i) {
    const Status status = rename();
    if (status.kind() != Kind::busy || i == most_times) return status;
    std::this_thread::sleep_for(pause);
  }
}

// What was at the path until now, under a name that no directory shows.
class Former {
 public:
  explicit Former(std::string path) : path_(std::move(path)) {}

  // `by` takes its place.
  Status give_way(const std::string& by) {
    auto located = catalog::locate(path_, settings(), {.ignore_edits = true});
    if (located && (open_ = OpenFile::find(located->manifest.file_id))) {
      HF_TRY(when_free([this] { return open_->unlink(); }));
      return put_there(by);
    }
    hidden_ = catalog::parent_of(path_) + "/" + catalog::removed_name(located ? located->manifest.file_id : layout::random_id());
    const Status replaced = when_free([&] { return catalog::replace(by, path_, hidden_, settings()); });
    if (replaced.ok() || replaced.kind() == Kind::busy) return replaced;
    HF_TRY(put_aside());
    return put_there(by);
  }

  void remove() {
    if (!hidden_.empty()) (void)catalog::remove(hidden_, settings());
  }

 private:
  Status put_aside() {
    const Status moved = when_free([this] { return catalog::rename(path_, hidden_, settings()); });
    if (moved.ok() || moved.kind() == Kind::busy) return moved;
    hidden_.clear();
    return catalog::remove(path_, settings());  // edited, or out of reach: nothing that could be put back
  }

  Status put_there(const std::string& by) {
    const Status status = when_free([&] { return catalog::rename(by, path_, settings()); });
    if (!status.ok()) put_back();
    return status;
  }

  void put_back() {
    const Status status = open_ ? open_->rename(path_) : hidden_.empty() ? Status() : catalog::rename(hidden_, path_, settings());
    if (!status.ok()) complain(path_, "what was there before could not be put back: " + status.sentence());
  }

  const std::string path_;
  std::string hidden_;
  std::shared_ptr<OpenFile> open_;
};

// A directory beside `path` that no directory shows, in which the file grows under its own name.
class Nursery {
 public:
  explicit Nursery(const std::string& path) : directory_(catalog::new_sidecar_beside(path)), file_(directory_ + "/" + catalog::name_of(path)) {}
  ~Nursery() { raw::unlinkat(AT_FDCWD, directory_.c_str(), AT_REMOVEDIR); }
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;
  Status make() const { return catalog::make_directory(directory_); }
  const std::string& file() const { return file_; }

 private:
  const std::string directory_, file_;
};

int failed(const std::string& path, const Status& status) {
  complain(path, status.sentence());
  return errno = status.to_errno(), -1;
}

void take_times(const std::string& path, const struct stat& from) {
  const timespec times[2] = {from.st_atim, from.st_mtim};
  syscall(SYS_utimensat, AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

Status replace(int source, const struct stat& state, const std::string& from, const std::string& to, bool to_is_protected) {
  const Nursery nursery(to);
  HF_TRY(nursery.make());
  const Settings making = to_is_protected && !is_named(to) ? posix_files::made_like(to, settings()) : settings();
  HF_TRY(posix_files::protect_copy(source, from, nursery.file(), state.st_mode & 0777, making));
  Former former(to);
  const Status status = to_is_protected ? former.give_way(nursery.file()) : catalog::rename(nursery.file(), to, settings());
  if (!status.ok()) {
    (void)catalog::remove(nursery.file(), settings());
    return status;
  }
  take_times(to, state);
  const Status gone = catalog::unlink_file(from);
  former.remove();
  return gone;
}

}  // namespace

bool becomes_protected(int from_directory, const char* from, int to_directory, const char* to, bool to_is_protected) {
  struct stat source, there, parent;
  if (!to_is_protected && !is_named(full_path(to_directory, to))) return false;
  const OurCode ours_now;
  if (raw::fstatat(from_directory, from, &source, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(source.st_mode)) return false;
  const std::string directory = catalog::parent_of(catalog::absolute_path(full_path(to_directory, to)));
  if (raw::fstatat(AT_FDCWD, directory.c_str(), &parent, 0) != 0 || parent.st_dev != source.st_dev) return false;
  if (raw::fstatat(to_directory, to, &there, AT_SYMLINK_NOFOLLOW) != 0) return true;
  return !S_ISDIR(there.st_mode) && (there.st_ino != source.st_ino || there.st_dev != source.st_dev);
}

int rename_protected(int from_directory, const char* from, int to_directory, const char* to, bool to_is_protected) {
  const OurCode ours_now;
  const std::string full_from = catalog::absolute_path(full_path(from_directory, from));
  const std::string full_to = catalog::absolute_path(full_path(to_directory, to));
  const raw::Fd source(raw::out_of_the_way(raw::Fd(raw::openat(from_directory, from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC))));
  struct stat state;
  if (!source || raw::fstat(source.get(), &state) != 0)
    return failed(full_to, Status::from_errno(errno, full_from + " cannot be read, which it has to be to be protected under this name"));
  if (is_written(source.get(), state)) {
    complain(full_to, full_from +
                          " is open for writing while it gets this name, so it stays plain; close it before the rename, or "
                          "protect it later: holdfast import " +
                          full_to);
    return 1;
  }
  const Status status = replace(source.get(), state, full_from, full_to, to_is_protected);
  return status.ok() ? 0 : failed(full_to, status);
}

}  // namespace holdfast::intercept::posix
