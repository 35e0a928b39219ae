#include "intercept/posix/decided.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "base/raw_syscalls.hpp"
#include "file/coordinated/coordinated.hpp"
#include "intercept/posix/as_one.hpp"
#include "intercept/posix/checkpoints.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/paths.hpp"
#include "redundant/subjects.hpp"

namespace holdfast::intercept::posix {

namespace {

using redundant::Replica;

// By number. One that the program has closed behind our back is known by what stands there now.
struct Named {
  std::string name;
  uint64_t device = 0, inode = 0;
};
struct NamedNumbers {
  std::mutex mutex;
  std::map<int, Named> all;
};
NamedNumbers& named_numbers() {
  static auto* const all = new NamedNumbers;  // never destroyed: descriptors are used to the end
  return *all;
}

bool is_same(int fd, const Named& named) {
  struct stat state {};
  return raw::fstat(fd, &state) == 0 && state.st_dev == named.device && state.st_ino == named.inode;
}

bool is_random_device(const struct stat& state) {
  constexpr unsigned of_memory = 1, random = 8, urandom = 9;
  return S_ISCHR(state.st_mode) && major(state.st_rdev) == of_memory && (minor(state.st_rdev) == random || minor(state.st_rdev) == urandom);
}

template <class Value>
Bytes bytes_of_value(const Value& value) {
  const auto* const at = reinterpret_cast<const std::byte*>(&value);
  return {at, at + sizeof value};
}

bool changes_what_is_there(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_TRUNC | O_CREAT)) || (flags & O_TMPFILE) == O_TMPFILE; }

// What an open has found, in the leader.
struct Opened {
  int64_t error = 0, size = -1, changed_ns = 0;  // a size of -1: no file
};

Opened what_was_opened(int fd, int error) {
  constexpr int64_t ns_of_second = 1000000000;
  struct stat state {};
  if (fd < 0) return {.error = error};
  if (is_watched(fd) || raw::fstat(fd, &state) != 0 || !S_ISREG(state.st_mode)) return {};
  return {0, state.st_size, state.st_mtim.tv_sec * ns_of_second + state.st_mtim.tv_nsec};
}

// A file that is only read has no copy of what it was then.
void compare_with_then(Replica& replica, const std::string& name, const Opened& then, const Opened& now) {
  if (now.error != 0 && then.error == 0)
    replica.cannot_catch_up(fmt::format("{} was opened then, and now it cannot be: {}", name, std::strerror(int(now.error))));
  if (then.size >= 0 && now.size >= 0 && (then.size != now.size || then.changed_ns != now.changed_ns))
    replica.cannot_catch_up(name + " has been changed since it was read");
}

// In the leader; 0: it has the file.
int64_t error_then(Replica& replica, const std::string& name, const Opened& mine) {
  const bool was_behind = replica.is_behind();
  const Bytes answer = told(replica, "open", name, [&] { return bytes_of_value(mine); });
  Opened then;
  if (answer.size() != sizeof then) replica.differs(name + ", its open, where the leader has asked something else");
  std::memcpy(static_cast<void*>(&then), answer.data(), sizeof then);
  if (was_behind) compare_with_then(replica, name, then, mine);
  return then.error;
}

void note_random(int fd) {
  struct stat state {};
  if (fd < 0 || raw::fstat(fd, &state) != 0 || !is_random_device(state)) return;
  note_name(fd, "random numbers");
  random_is_open = true;
}

}  // namespace

std::string name_asked(const Replica& replica, int directory, const char* path) {
  if (!path || !*path) return "";
  std::string text = path;
  if (text[0] != '/') {
    char here[PATH_MAX] = "";
    const std::string base = directory != AT_FDCWD ? name_of_number(directory) : ::getcwd(here, sizeof here) ? here : "";
    if (base.empty()) return "";
    text = base + "/" + text;
  }
  text = std::filesystem::path(text).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return is_each_replicas_own(replica, text) ? "" : text;
}

void note_name(int fd, const std::string& name) {
  struct stat state {};
  if (fd < 0 || name.empty() || raw::fstat(fd, &state) != 0) return;
  NamedNumbers& numbers = named_numbers();
  const std::lock_guard lock(numbers.mutex);
  numbers.all[fd] = {name, state.st_dev, state.st_ino};
}

std::string name_of_number(int fd) {
  NamedNumbers& numbers = named_numbers();
  const std::lock_guard lock(numbers.mutex);
  const auto found = numbers.all.find(fd);
  return found != numbers.all.end() && is_same(fd, found->second) ? found->second.name : "";
}

void name_duplicate(int fd, int duplicate) {
  const OurCode ours_now;
  const KeepErrno keep;
  note_name(duplicate, name_of_number(fd));
}

Bytes told(Replica& replica, const char* kind, const std::string& name, const std::function<Bytes()>& ask) {
  return replica.answer(redundant::name_subject(file::subject_of(kind, name)), ask);
}

int told(Replica& replica, const char* kind, const std::string& name, int result, void* into, size_t bytes) {
  const Told mine{result, result < 0 ? errno : 0};
  const Bytes answer = told(replica, kind, name, [&] {
    Bytes all(sizeof mine + (result >= 0 ? bytes : 0));
    std::memcpy(all.data(), &mine, sizeof mine);
    if (result >= 0 && bytes > 0) std::memcpy(all.data() + sizeof mine, into, bytes);
    return all;
  });
  Told all;
  if (answer.size() >= sizeof all) std::memcpy(&all, answer.data(), sizeof all);
  if (answer.size() != sizeof all + (all.result < 0 ? 0 : bytes)) replica.differs(name + ", of which the leader has asked something else");
  if (all.result < 0) return errno = int(all.error), -1;
  if (bytes > 0) std::memcpy(into, answer.data() + sizeof all, bytes);
  return int(all.result);
}

int open_as_told(Replica& replica, int directory, const char* path, int flags, const std::function<int()>& open_now) {
  // Of a checkpoint each team has a copy with times of its own. Which version is meant has been decided where it is looked for.
  const bool is_decided = checkpoint_at(directory, path).has_value();
  const std::string name = [&] {
    const OurCode ours_now;
    return name_asked(replica, directory, path);
  }();
  const int fd = open_now();
  const int error = errno;
  const int64_t then = [&]() -> int64_t {
    const OurCode ours_now;
    if (name.empty()) note_random(fd);
    return name.empty() || is_decided || changes_what_is_there(flags) ? 0 : error_then(replica, name, what_was_opened(fd, error));
  }();
  if (then != 0) {
    if (fd >= 0) (void)close(fd);
    return errno = int(then), -1;
  }
  const OurCode ours_now;
  note_name(fd, name);
  return errno = error, fd;
}

bool is_random_number(int fd) {
  const OurCode ours_now;
  const KeepErrno keep;
  struct stat state {};
  return in_mpi_calls == 0 && Replica::now() && !name_of_number(fd).empty() && raw::fstat(fd, &state) == 0 && is_random_device(state);
}

}  // namespace holdfast::intercept::posix
