#include "service/output_gatherer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "base/raw_syscalls.hpp"
#include "service/helper_process.hpp"

namespace holdfast::service {

namespace {

constexpr int pipe_bytes = 1 << 20;  // what a rank may be ahead of the file; the kernel may allow less

struct Pipe {
  raw::Fd read_end, write_end;
  Status make() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno(errno, "pipe");
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
    (void)raw::fcntl(read_end.get(), F_SETPIPE_SZ, pipe_bytes);
    return Status();
  }
};

// Descriptors 1 and 2 as they were: what the gatherer falls back on. A closed one stays closed.
raw::Fd as_it_was(int fd) {
  const int kept = raw::fcntl(fd, F_DUPFD_CLOEXEC, first_helper_descriptor);
  return kept >= 0 ? raw::Fd(kept) : raw::Fd(raw::openat(AT_FDCWD, "/dev/null", O_WRONLY | O_CLOEXEC));
}

}  // namespace

Status gather_output(const std::string& helper, const std::string& file, const std::string& label) {
  const raw::Fd into(raw::openat(AT_FDCWD, file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!into) return Status::from_errno(errno, file);
  // Held by all who share this open file: the gatherer. gathered() waits for it.
  (void)raw::flock(into.get(), LOCK_SH);
  Pipe out, err;
  HF_TRY(out.make());
  HF_TRY(err.make());
  const raw::Fd out_before = as_it_was(1), err_before = as_it_was(2);
  HF_TRY(start_helper(helper, {label}, {into.get(), out.read_end.get(), err.read_end.get(), out_before.get(), err_before.get()}));
  for (const auto& [pipe, fd] : {std::pair{&out, 1}, std::pair{&err, 2}})
    if (syscall(SYS_dup3, pipe->write_end.get(), fd, 0) < 0) return Status::from_errno(errno, "dup3");
  return Status();
}

bool gathered(const std::string& file, int milliseconds) {
  const raw::Fd all(raw::openat(AT_FDCWD, file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!all) return true;
  constexpr int step_ms = 2;
  for (int waited = 0; raw::flock(all.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; waited += step_ms) {
    if (waited >= milliseconds) return false;
    const timespec pause{0, step_ms * 1000000};
    ::nanosleep(&pause, nullptr);
  }
  return true;
}

}  // namespace holdfast::service
