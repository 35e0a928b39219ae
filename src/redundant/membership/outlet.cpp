#include "redundant/membership/outlet.hpp"

#include <poll.h>

#include <cerrno>
#include <utility>

#include "base/quiet_thread.hpp"
#include "base/raw_syscalls.hpp"

namespace holdfast::redundant {

int write_all(int fd, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t done = raw::write(fd, bytes.data(), bytes.size());
    if (done > 0) {
      bytes = bytes.subspan(size_t(done));
    } else if (done < 0 && errno == EAGAIN) {
      pollfd has_room{fd, POLLOUT, 0};
      (void)::poll(&has_room, 1, -1);
    } else if (done == 0 || errno != EINTR) {
      return done == 0 ? EIO : errno;
    }
  }
  return 0;
}

bool Outlet::start() {
  return start_quiet_thread([self = shared_from_this()] { self->serve(); });
}

void Outlet::give(std::function<void()> writes) {
  std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(writes));
  changed_.notify_all();
}

void Outlet::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !writes_; });
}

void Outlet::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !waiting_.empty(); });
    const std::function<void()> write = std::move(waiting_.front());
    waiting_.pop_front();
    writes_ = true;
    lock.unlock();
    write();
    lock.lock();
    writes_ = false;
    changed_.notify_all();
  }
}

}  // namespace holdfast::redundant
