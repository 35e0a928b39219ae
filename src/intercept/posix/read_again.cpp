#include "intercept/posix/read_again.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "base/raw_syscalls.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/real.hpp"

namespace holdfast::intercept::posix {

namespace {

constexpr int64_t is_small = 64 << 10, is_tiny = 4 << 10;
constexpr size_t most_kept = 4 << 20, most_known = 100000;
constexpr int64_t ns_of_second = 1000000000, is_young_ns = 600 * ns_of_second;

struct Known {
  FoundAtOpen last;
  bool changes = false;
  std::optional<Bytes> content;  // of the last one; not of all that are opened but once
};
struct KnownFiles {
  std::mutex mutex;
  std::map<std::string, Known> all;
  size_t kept_bytes = 0;
};
KnownFiles& known_files() {
  static auto* const all = new KnownFiles;  // never destroyed: files are opened to the end
  return *all;
}

bool may_be_read_as_one(const FoundAtOpen& found) { return found.error == 0 && found.size >= 0 && found.size <= is_small; }

std::optional<Bytes> content_of(int fd, const FoundAtOpen& state) {
  Bytes content(size_t(state.size));
  for (size_t at = 0; at < content.size();) {
    const ssize_t got = raw::pread(fd, content.data() + at, content.size() - at, off_t(at));
    if (got <= 0) return std::nullopt;
    at += size_t(got);
  }
  return what_was_opened(fd, 0).same_content(state) ? std::optional(std::move(content)) : std::nullopt;
}

int64_t now_ns() {
  timespec now{};
  real().clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * ns_of_second + now.tv_nsec;
}

// On the number of `fd`, at its beginning.
bool put_in_its_place(int fd, const Bytes& content) {
  const raw::Fd memory(int(syscall(SYS_memfd_create, "holdfast: as it was read", MFD_CLOEXEC)));
  if (!memory || raw::write(memory.get(), content.data(), content.size()) != ssize_t(content.size())) return false;
  const raw::Fd to_read(raw::openat(AT_FDCWD, fmt::format("/proc/self/fd/{}", memory.get()).c_str(), O_RDONLY | O_CLOEXEC));
  const int flags = raw::fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
  return to_read && syscall(SYS_dup3, to_read.get(), fd, flags) >= 0;
}

// It may have become what the leader has found since this replica has opened it.
bool open_once_more(const std::string& name, const FoundAtOpen& then, int fd) {
  const raw::Fd again(raw::openat(AT_FDCWD, name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!again || !what_was_opened(again.get(), 0).same_content(then)) return false;
  const int flags = raw::fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
  return syscall(SYS_dup3, again.get(), fd, flags) >= 0;
}

}  // namespace

FoundAtOpen what_was_opened(int fd, int error) {
  struct stat state {};
  if (fd < 0) return {.error = error};
  if (is_watched(fd) || raw::fstat(fd, &state) != 0 || !S_ISREG(state.st_mode)) return {};
  return {0, state.st_size, state.st_mtim.tv_sec * ns_of_second + state.st_mtim.tv_nsec};
}

bool changes_while_it_is_read(const std::string& name, const FoundAtOpen& found) {
  KnownFiles& files = known_files();
  const std::lock_guard lock(files.mutex);
  const auto known = files.all.find(name);
  return may_be_read_as_one(found) && known != files.all.end() && (known->second.changes || !known->second.last.same_content(found));
}

Bytes content_of_young(const std::string& name, const FoundAtOpen& found, int fd) {
  if (!may_be_read_as_one(found) || found.changed_ns + is_young_ns < now_ns()) return {};
  KnownFiles& files = known_files();
  const std::lock_guard lock(files.mutex);
  const bool is_wanted = !files.all.contains(name) && files.kept_bytes + size_t(found.size) <= most_kept;  // it is in the log of the job, too
  return is_wanted ? content_of(fd, found).value_or(Bytes()) : Bytes();
}

namespace {

void keep(KnownFiles& files, Known& known, std::optional<Bytes> content) {
  if (known.content) files.kept_bytes -= known.content->size();
  known.content = std::move(content);
  if (known.content && files.kept_bytes + known.content->size() > most_kept) known.content.reset();
  if (known.content) files.kept_bytes += known.content->size();
}

}  // namespace

void note_opened(const std::string& name, const FoundAtOpen& then, Bytes content, const FoundAtOpen& mine, int fd) {
  if (!may_be_read_as_one(then)) return;
  KnownFiles& files = known_files();
  const std::lock_guard lock(files.mutex);
  if (files.all.size() >= most_known && !files.all.contains(name)) return;
  const auto [at, is_new] = files.all.try_emplace(name);
  Known& known = at->second;
  if (is_new || !known.last.same_content(then)) keep(files, known, content.empty() ? std::nullopt : std::optional(std::move(content)));
  known.changes |= then.is_read_as_one != 0;
  known.last = then;
  if (then.is_read_as_one || mine.size < 0) return;
  if (mine.same_content(then) || open_once_more(name, then, fd)) {
    if (!known.content && (!is_new || then.size <= is_tiny)) keep(files, known, content_of(fd, then));
  } else if (known.content) {
    (void)put_in_its_place(fd, *known.content);
  }
}

}  // namespace holdfast::intercept::posix
