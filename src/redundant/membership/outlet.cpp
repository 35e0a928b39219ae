#include "redundant/membership/outlet.hpp"

#include <utility>

#include "base/quiet_thread.hpp"

namespace holdfast::redundant {

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
