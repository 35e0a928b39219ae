// Where the ranks' output goes, by a thread of its own. A terminal that is held back holds back what the ranks print, and not the hub.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "base/bytes.hpp"

namespace holdfast::redundant {

// All of it, also where the descriptor would not wait (O_NONBLOCK). 0, or errno: the rest is not written.
int write_all(int fd, ByteView bytes);

class Outlet : public std::enable_shared_from_this<Outlet> {
 public:
  // False: the thread cannot be started.
  bool start();
  // After all that was given before.
  void give(std::function<void()> writes);
  // All has been written.
  void wait();

 private:
  void serve();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool writes_ = false;
};

}  // namespace holdfast::redundant
