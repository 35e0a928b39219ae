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
#include "intercept/posix/read_again.hpp"
#include "intercept/posix/settings.hpp"
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

bool changes_what_is_there(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_TRUNC | O_CREAT)) || (flags & O_TMPFILE) == O_TMPFILE; }

// A file that is only read has no copy of what it was then.
void compare_with_then(Replica& replica, const std::string& name, const FoundAtOpen& then, const FoundAtOpen& now) {
  if (now.error != 0 && then.error == 0)
    replica.cannot_catch_up(fmt::format("{} was opened then, and now it cannot be: {}", name, std::strerror(int(now.error))));
  if (then.size >= 0 && now.size >= 0 && !then.is_read_as_one && !then.same_content(now))
    replica.cannot_catch_up(name + " has been changed since it was read");
}

// The user has named how replicas read: then they read so whatever the program reads.
bool is_read_by_protocol(const FoundAtOpen& found) {
  const auto named = file::read_protocol_named(settings().read_protocol);
  return named && *named != file::ReadProtocol::none && found.error == 0 && found.size >= 0;
}

// In the leader. `fd` is this replica's own; with the leader's content it is noted.
FoundAtOpen opened_then(Replica& replica, const std::string& name, const FoundAtOpen& mine, int fd) {
  const bool was_behind = replica.is_behind(), may_be_read_as_one = settings().read_protocol != "none";
  const Bytes answer = told(replica, "open", name, [&] {
    FoundAtOpen all = mine;
    all.is_read_as_one = may_be_read_as_one && (is_read_by_protocol(mine) || changes_while_it_is_read(name, mine));
    const Bytes content = may_be_read_as_one ? content_of_young(name, mine, fd) : Bytes();
    Bytes whole(sizeof all + content.size());
    std::memcpy(whole.data(), &all, sizeof all);
    std::copy(content.begin(), content.end(), whole.begin() + sizeof all);
    return whole;
  });
  FoundAtOpen then;
  if (answer.size() < sizeof then) replica.differs(name + ", its open, where the leader has asked something else");
  std::memcpy(static_cast<void*>(&then), answer.data(), sizeof then);
  if (was_behind) compare_with_then(replica, name, then, mine);
  if (then.error == 0 && fd < 0) file::cannot_open_alone(replica, name, int(mine.error));
  if (may_be_read_as_one) note_opened(name, then, Bytes(answer.begin() + sizeof then, answer.end()), mine, fd);
  return then;
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

int open_as_told(Replica& replica, int directory, const char* path, int flags, const std::function<int()>& open_now,
                 const std::function<int()>& open_as_one) {
  // Of a checkpoint each team has a copy with times of its own. Which version is meant has been decided where it is looked for.
  const bool is_decided = checkpoint_at(directory, path).has_value();
  const std::string name = [&] {
    const OurCode ours_now;
    return name_asked(replica, directory, path);
  }();
  int fd = open_now(), error = errno;
  FoundAtOpen then;
  {
    const OurCode ours_now;
    const bool is_asked = !name.empty() && !is_decided && !changes_what_is_there(flags);
    const FoundAtOpen mine = what_was_opened(fd, error);
    if (name.empty()) note_random(fd);
    if (is_asked) then = opened_then(replica, name, mine, fd);
  }
  if (then.error != 0 || then.is_read_as_one) {
    if (fd >= 0) (void)close(fd);
    if (then.error != 0) return errno = int(then.error), -1;
    fd = open_as_one(), error = errno;
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
