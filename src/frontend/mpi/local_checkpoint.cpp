#include "frontend/mpi/local_checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include "base/own_numbers.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/local.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "frontend/posix/own_code.hpp"
#include "real_mpi.h"

namespace holdfast::frontend {

using posix::Checkpoints;

namespace {

constexpr mode_t as_mpi_makes_files = 0666;

std::string name_of_number(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

}  // namespace

bool LocalCheckpoint::is_one(const Settings& settings, const std::string& path) {
  if (settings.checkpoint.empty()) return false;
  const posix::OurCode ours_now;
  const Checkpoints* const all = Checkpoints::of_process(settings);
  return all && all->match(path, true);
}

Result<std::unique_ptr<LocalCheckpoint>> LocalCheckpoint::open(const Settings& settings, const std::string& path, int amode) {
  const posix::OurCode ours_now;
  if (!Checkpoints::of_process(settings))  // rank 0 has some
    return Status(Kind::unsupported, path + ": it is a checkpoint, and this rank is on none of the job's nodes; name its host in --hosts");
  std::unique_ptr<LocalCheckpoint> local(new LocalCheckpoint(settings, path));
  const bool writes = (amode & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0;
  if (Status opened = writes ? local->open_to_write(amode) : local->open_to_read(); !opened) return opened;
  return local;
}

Status LocalCheckpoint::open_to_write(int amode) {
  Checkpoints& all = *Checkpoints::of_process(settings_);
  const auto file = all.match(path_, true);
  int flags = O_CLOEXEC | (amode & MPI_MODE_RDWR ? O_RDWR : O_WRONLY);
  if (amode & MPI_MODE_CREATE) flags |= O_CREAT;
  if (amode & MPI_MODE_EXCL) flags |= O_EXCL;
  Status status;
  const int fd = file ? all.open_to_write(*file, flags, as_mpi_makes_files, status) : (errno = ENOENT, -1);
  if (fd < 0) return status ? Status::from_errno(errno, path_) : status;
  // Out of the numbers that the program counts on.
  if (const int kept = raw::duplicate_out_of_the_way(fd); kept >= 0) {
    all.duplicated(fd, kept);
    (void)all.closed(fd);  // before another thread gets the number
    raw::close(fd);
    descriptor_.reset(kept);
  } else {
    descriptor_.reset(fd);
  }
  // MPI has no open that truncates: this one is what writes a file anew.
  if (amode & MPI_MODE_CREATE) all.truncated(descriptor_.get());
  writes_ = true;
  name_ = name_of_number(descriptor_.get());
  if (amode & MPI_MODE_APPEND)
    if (std::string link = all.scratch(); catalog::environment().symlinkat(name_.c_str(), AT_FDCWD, link.c_str()) == 0) link_ = std::move(link);
  return {};
}

Status LocalCheckpoint::open_to_read() {
  Checkpoints& all = *Checkpoints::of_process(settings_);
  const auto file = all.match(path_, true);
  bool again = false;  // all replicas have looked together
  for (std::string before; file; again = true) {
    auto sight = again ? all.look_alone(*file) : all.look(*file);
    if (!sight) return sight.status();
    if (sight->what == Checkpoints::Sight::as_without) return {};
    if (sight->what == Checkpoints::Sight::absent) break;
    if (!sight->grows.empty()) return open_copy_of(*file, sight->grows);
    descriptor_ = raw::out_of_the_way(raw::Fd(checkpoint::open_for_program(sight->path, O_RDONLY | O_CLOEXEC, 0)));
    if (descriptor_) return name_ = name_of_number(descriptor_.get()), Status();
    // It may have gone on to its next state.
    if (errno != ENOENT || sight->path == before) return Status::from_errno(errno, path_);
    before = sight->path;
  }
  return Status(Kind::not_found, "", ENOENT);
}

// What processes of several nodes write just now: MPI reads a copy of it as it is.
Status LocalCheckpoint::open_copy_of(const Checkpoints::File& file, const std::string& file_id) {
  Checkpoints& all = *Checkpoints::of_process(settings_);
  const auto shared = all.find_shared(file, file_id);
  if (!shared) return shared.status();
  if (!*shared) return open_to_read();  // it is a version by now
  const auto copy = all.content_of(**shared);
  if (!copy) return copy.status();
  descriptor_ = raw::out_of_the_way(raw::Fd(checkpoint::open_for_program(*copy, O_RDONLY | O_CLOEXEC, 0)));
  const Status opened = descriptor_ ? Status() : Status::from_errno(errno, path_);
  (void)catalog::unlink_file(*copy);
  name_ = name_of_number(descriptor_.get());
  return opened;
}

int LocalCheckpoint::amode_for_mpi(int amode) const {
  return descriptor_ ? amode & ~(MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE) : amode;
}

Status LocalCheckpoint::close(bool and_remove) {
  if (!descriptor_) return {};
  const posix::OurCode ours_now;
  Checkpoints& all = *Checkpoints::of_process(settings_);
  if (!link_.empty()) (void)catalog::unlink_file(link_);
  const int fd = descriptor_.release();
  const int written = writes_ ? all.closing(fd) : 0;
  raw::close(fd);
  // A link goes itself, and what it leads to stays.
  const bool removes_link = and_remove && all.is_link_to_one(path_), removes = and_remove && !removes_link;
  const auto file = removes ? all.match(path_) : std::nullopt;
  const Status removed = removes_link ? catalog::unlink_file(path_) : file ? all.remove(*file) : Status();
  if (written == 0) return removed;
  const std::string path = all.closed(written, removes);
  if (const Status late = all.protected_at_close(path); !late) say(late.sentence());
  return removed;
}

}  // namespace holdfast::frontend
