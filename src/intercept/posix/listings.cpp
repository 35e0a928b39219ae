#include "intercept/posix/listings.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>

#include "catalog/user_files.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "intercept/posix/settings.hpp"

namespace holdfast::intercept::posix {

namespace {

std::mutex mutex;
// From before this library's constructors until the process ends. Null: nothing of ours is in that directory.
auto& streams() {
  static auto& all = *new std::map<DIR*, std::unique_ptr<Listed>>;
  return all;
}

}  // namespace

bool Listed::shows(const char* name) {
  const OurCode ours_now;
  left_.erase(name);
  return !Checkpoints::of_process(settings())->hides(what_, name);
}

void Listed::go_to(long position) {
  behind_ = is_position(position);
  next_ = behind_ ? size_t(-2 - position) : 0;
}

dirent64* Listed::next_entry() {
  behind_ = true;
  if (error_) errno = error_;
  if (next_ >= left_.size()) return nullptr;
  const OurCode ours_now;
  const std::string& name = *std::next(left_.begin(), long(next_++));
  entry_ = {};
  entry_.d_ino = std::hash<std::string>()(what_.directory + "/" + name) | 1;
  entry_.d_type = DT_REG;
  std::memcpy(entry_.d_name, name.c_str(), std::min(name.size(), sizeof entry_.d_name - 1));
  constexpr size_t word = sizeof entry_.d_ino;
  entry_.d_reclen = static_cast<unsigned short>((offsetof(dirent64, d_name) + name.size() + word) / word * word);
  return &entry_;
}

Listed* listed(DIR* stream) {
  Checkpoints* const all = checkpoints();
  if (!all) return nullptr;
  const OurCode ours_now;
  const KeepErrno keep;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = streams().find(stream); found != streams().end()) return found->second.get();
  }
  const std::string directory = path_behind(dirfd(stream));
  auto listing = all->list(directory);
  std::unique_ptr<Listed> fresh;
  if (!listing) {
    complain(directory, listing.status().sentence());
    fresh = std::make_unique<Listed>(listing.status().to_errno());
  } else if (*listing) {
    fresh = std::make_unique<Listed>(std::move(**listing));
  }
  const std::lock_guard lock(mutex);
  return (streams()[stream] = std::move(fresh)).get();
}

void forget_listed(DIR* stream) {
  if (!checkpoints()) return;
  const OurCode ours_now;
  const std::lock_guard lock(mutex);
  streams().erase(stream);
}

bool holds_checkpoints(int directory, const char* path) {
  Checkpoints* const all = path && *path ? checkpoints() : nullptr;
  if (!all) return false;
  const OurCode ours_now;
  const KeepErrno keep;
  const auto listing = all->list(catalog::absolute_path(full_path(directory, path)));
  return listing && *listing && !(*listing)->names.empty();
}

}  // namespace holdfast::intercept::posix
