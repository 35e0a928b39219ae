#include "frontend/posix/losses.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/raw_syscalls.hpp"

namespace holdfast::frontend::posix {

namespace {

struct Losses {
  std::mutex mutex;
  std::vector<Loss> all;
};

// Never destroyed: destructors of other libraries may still write.
Losses& of_this_process() {
  static auto* one = new Losses;
  return *one;
}

std::atomic<bool> loss_noted{false};

bool is_gone(const Loss& loss) {
  struct stat state;
  return raw::fstatat(AT_FDCWD, loss.path.c_str(), &state, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

}  // namespace

void note_loss(const std::string& path, const Status& status) {
  Losses& here = of_this_process();
  std::lock_guard lock(here.mutex);
  if (std::any_of(here.all.begin(), here.all.end(), [&](const Loss& loss) { return loss.path == path; })) return;
  loss_noted = true;
  here.all.push_back({path, status.sentence().empty() ? std::strerror(status.to_errno()) : status.sentence()});
}

bool any_loss() { return loss_noted.load(std::memory_order_relaxed); }

std::vector<Loss> take_losses() {
  Losses& here = of_this_process();
  std::lock_guard lock(here.mutex);
  loss_noted = false;
  std::vector<Loss> taken = std::exchange(here.all, {});
  std::erase_if(taken, is_gone);
  return taken;
}

void forget_losses() {
  loss_noted = false;
  of_this_process().all.clear();
}

}  // namespace holdfast::frontend::posix
