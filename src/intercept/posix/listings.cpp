#include "intercept/posix/listings.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/raw_syscalls.hpp"
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

// The same of numbers, while a program reads them; of a number that is another file's by now it is made anew.
auto& numbers_of_listings() {
  static auto& all = *new std::map<int, std::unique_ptr<Listed>>;
  return all;
}

std::unique_ptr<Listed> listed_now(Checkpoints& all, const std::string& directory) {
  auto listing = all.list(directory);
  if (listing) return *listing ? std::make_unique<Listed>(std::move(**listing)) : nullptr;
  complain(directory, listing.status().sentence());
  return std::make_unique<Listed>(listing.status().to_errno());
}

// No deeper than the patterns are. A directory may have a name that they mean as well, and links lead elsewhere.
void add_plain_files(const Checkpoints& all, const std::string& directory, std::vector<std::string>& found) {
  auto names = all.may_lie_below(directory) ? catalog::list_directory(directory) : Status(Kind::not_found, "");
  if (!names) return;
  std::sort(names->begin(), names->end());
  for (const std::string& name : *names) {
    const std::string path = directory + "/" + name;
    const auto there = catalog::look(path, false);
    if (there && there->directory()) add_plain_files(all, path, found);
    else if (there && there->regular() && all.match(path)) found.push_back(path);
  }
}

}  // namespace

bool Listed::shows(const char* name) {
  left_.erase(name);
  return !hides(what_, name);
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
  auto fresh = listed_now(*all, path_behind(dirfd(stream)));
  const std::lock_guard lock(mutex);
  return (streams()[stream] = std::move(fresh)).get();
}

Listed* listed(int directory) {
  Checkpoints* const all = checkpoints();
  if (!all) return nullptr;
  const OurCode ours_now;
  const KeepErrno keep;
  const std::string path = path_behind(directory);
  const bool begins = raw::lseek(directory, 0, SEEK_CUR) == 0;
  {
    const std::lock_guard lock(mutex);
    const auto found = numbers_of_listings().find(directory);
    if (found != numbers_of_listings().end() && !begins && found->second && found->second->directory() == path) return found->second.get();
  }
  auto fresh = listed_now(*all, path);
  const std::lock_guard lock(mutex);
  return (numbers_of_listings()[directory] = std::move(fresh)).get();
}

std::optional<Checkpoints::Listing> listing_of(const std::string& directory) {
  Checkpoints* const all = checkpoints();
  if (!all) return {};
  const OurCode ours_now;
  const KeepErrno keep;
  auto listing = all->list(directory);
  if (listing) return std::move(*listing);
  complain(directory, listing.status().sentence());
  return {};
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

namespace {

// No deeper than checkpoints may lie.
bool shows_nothing(const std::string& directory) {
  const auto listing = listing_of(directory);
  const auto names = [&]() -> Result<std::vector<std::string>> {
    const OurCode ours_now;
    return listing && listing->names.empty() ? catalog::list_directory(directory) : Status(Kind::not_found, "");
  }();
  if (!names) return false;
  return std::all_of(names->begin(), names->end(), [&](const std::string& name) {
    if (hides(*listing, name)) return true;
    const std::string path = directory + "/" + name;
    const bool is_directory = [&] {
      const OurCode ours_now;
      const auto there = catalog::look(path, false);
      return there && there->directory();
    }();
    return is_directory && shows_nothing(path);
  });
}

}  // namespace

bool shows_nothing(int directory, const char* path) {
  if (!path || !*path || !checkpoints()) return false;
  const KeepErrno keep;
  const std::string full = [=] {
    const OurCode ours_now;
    return catalog::absolute_path(full_path(directory, path));
  }();
  return shows_nothing(full);
}

bool hides(const Checkpoints::Listing& listing, const std::string& name) {
  Checkpoints* const all = checkpoints();
  if (!all) return false;
  const OurCode ours_now;
  const KeepErrno keep;
  return all->hides(listing, name) || all->hides_directory(listing, name);
}

namespace {

// Where it may be one that is not seen: the process's, and its path. In our own code none is.
std::pair<Checkpoints*, std::string> with_directories(int directory, const char* path) {
  Checkpoints* const all = path && *path && inside == 0 ? checkpoints() : nullptr;
  if (!all || !all->may_have_unseen_directories()) return {nullptr, ""};
  const KeepErrno keep;
  const OurCode ours_now;
  struct stat there;
  if (raw::fstatat(directory, path, &there, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(there.st_mode)) return {nullptr, ""};
  return {all, catalog::absolute_path(full_path(directory, path))};
}

int answer_of(const Status& status) { return status.ok() ? 0 : (errno = status.to_errno(), -1); }

}  // namespace

bool is_unseen_directory(int directory, const char* path) {
  const auto [all, full] = with_directories(directory, path);
  const KeepErrno keep;
  const OurCode ours_now;
  return all && all->is_unseen_directory(full);
}

int make_unseen_directory(int directory, const char* path) {
  const auto [all, full] = with_directories(directory, path);
  const OurCode ours_now;
  return all ? answer_of(all->directory_is_made(full)) : (errno = EEXIST, -1);
}

int remove_unseen_directory(int directory, const char* path) {
  const auto [all, full] = with_directories(directory, path);
  const OurCode ours_now;
  return all ? answer_of(all->directory_is_removed(full)) : 0;
}

bool cleared_of_marks(int directory, const char* path) {
  const auto [all, full] = with_directories(directory, path);
  const KeepErrno keep;
  const OurCode ours_now;
  return all && all->cleared_of_marks(full);
}

std::vector<std::string> plain_files_named_so(int directory, const char* path) {
  Checkpoints* const all = path && *path ? checkpoints() : nullptr;
  if (!all) return {};
  const OurCode ours_now;
  const KeepErrno keep;
  std::vector<std::string> found;
  add_plain_files(*all, catalog::absolute_path(full_path(directory, path)), found);
  return found;
}

}  // namespace holdfast::intercept::posix
