#include "tree/rename_plain.hpp"

#include <sys/stat.h>

#include "base/own_numbers.hpp"
#include "base/raw_syscalls.hpp"
#include "base/shell_word.hpp"
#include "catalog/catalog.hpp"
#include "catalog/nursery.hpp"
#include "catalog/user_files.hpp"
#include "tree/conversion.hpp"
#include "tree/former.hpp"

namespace holdfast::tree {

namespace {

// By a lease, or by what this process itself has open.
bool is_written(int fd, const struct stat& file, Openings& openings) {
  return is_leased_to_writers(fd) || openings.is_written(file.st_dev, file.st_ino);
}

void take_times(const std::string& path, const struct stat& from) {
  const timespec times[2] = {from.st_atim, from.st_mtim};
  syscall(SYS_utimensat, AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

class Conversion {
 public:
  Conversion(std::string from, const Name& to, Making making, const Settings& settings, Openings& openings)
      : from_(std::move(from)), to_(to), making_(making), settings_(settings), openings_(openings), former_(to.path, settings, openings) {}

  Answer run() {
    const raw::Fd source(raw::out_of_the_way(raw::Fd(raw::openat(AT_FDCWD, from_.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC))));
    struct stat state;
    if (!source || raw::fstat(source.get(), &state) != 0)
      return told(Status::from_errno(errno, from_ + " cannot be read, which it has to be to be protected under this name"));
    if (is_written(source.get(), state, openings_)) return stays_plain();
    return told(replace(source.get(), state));
  }

 private:
  // Whatever the failure is.
  Answer told(const Status& status) {
    Answer answer{.status = status, .lines = std::move(former_.lines())};
    if (!status.ok()) answer.lines.push_back({to_.path, status.sentence()});
    return answer;
  }

  Answer stays_plain() const {
    return {.natively = true,
            .lines = {{to_.path, from_ +
                                     " is open for writing while it gets this name, so it stays plain; close it before the rename, or "
                                     "protect it later: holdfast import " +
                                     shell_word(to_.path)}}};
  }

  Status replace(int source, const struct stat& state) {
    const catalog::Nursery nursery(to_.path);
    HF_TRY(nursery.make());
    const Settings making = making_ == Making::as_what_is_there ? made_like(to_.path, settings_) : settings_;
    HF_TRY(protect_copy(source, from_, nursery.file(), state.st_mode & 0777, making));
    const Status status = to_.is_protected ? former_.give_way(nursery.file()) : catalog::rename(nursery.file(), to_.path, settings_);
    if (!status.ok()) {
      (void)catalog::remove(nursery.file(), settings_);
      return status;
    }
    take_times(to_.path, state);
    const Status gone = catalog::unlink_file(from_);
    if (gone.ok()) former_.remove();
    else undo(nursery.file());
    return gone;
  }

  void undo(const std::string& made) {
    if (to_.is_protected) former_.take_back(made);
    (void)catalog::remove(to_.is_protected ? made : to_.path, settings_);
  }

  const std::string from_;
  const Name to_;
  const Making making_;
  const Settings& settings_;
  Openings& openings_;
  Former former_;
};

}  // namespace

Answer rename_plain(const std::string& from, const Name& to, Making making, const Settings& settings, Openings& openings) {
  return Conversion(catalog::absolute_path(from), {catalog::absolute_path(to.path), to.is_protected}, making, settings, openings).run();
}

}  // namespace holdfast::tree
