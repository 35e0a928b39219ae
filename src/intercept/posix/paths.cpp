#include "intercept/posix/paths.hpp"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <iterator>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "base/raw_syscalls.hpp"
#include "intercept/posix/real.hpp"

namespace holdfast::intercept::posix {

namespace {

bool is_in_group(gid_t group, bool effective) {
  if (group == (effective ? getegid() : getgid())) return true;
  constexpr int most = 1024;
  gid_t groups[most];
  const int count = getgroups(most, groups);
  return std::find(groups, groups + std::max(count, 0), group) != groups + std::max(count, 0);
}

}  // namespace

int access_of_file(int directory, const char* path, int wanted, int identity) {
  const int result = real().faccessat(directory, path, wanted & ~W_OK, identity);
  struct stat state;
  mode_t mode = 0;
  if (result != 0 || !(wanted & W_OK) || raw::fstatat(directory, path, &state, 0) != 0) return result;
  if (!stub_sized(state.st_mode, state.st_size) || !is_stub_at(directory, path, &mode)) return errno = EACCES, -1;
  const bool effective = identity & AT_EACCESS;
  const bool owner = state.st_uid == (effective ? geteuid() : getuid());
  const mode_t bit = owner ? 0200 : is_in_group(state.st_gid, effective) ? 0020 : 0002;
  return mode & bit ? 0 : (errno = EACCES, -1);
}

bool is_allowed(int directory, const char* path, int wanted) {
  const int before = errno;
  const bool asks_stub = real().faccessat(directory, path, wanted, AT_EACCESS) != 0 && errno == EACCES && is_stub_at(directory, path);
  if (asks_stub && access_of_file(directory, path, wanted, AT_EACCESS) != 0) return false;
  errno = before;
  return true;
}

bool is_link_of_the_program(int directory, const char* path) {
  struct stat state;
  return raw::fstatat(directory, path, &state, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(state.st_mode) && !is_link_of_ours(directory, path);
}

std::string full_path(int directory, const char* path) {
  if (*path == '/' || directory == AT_FDCWD) return path;
  return fmt::format("/proc/self/fd/{}/{}", directory, path);
}

std::string path_behind(int fd) {
  char link[64], path[PATH_MAX];
  *fmt::format_to(link, "/proc/self/fd/{}", fd) = '\0';
  const ssize_t length = raw::readlinkat(AT_FDCWD, link, path, sizeof path);
  std::string_view name(path, length > 0 && path[0] == '/' ? size_t(length) : 0);
  // So the kernel calls a name that was looked up anew meanwhile, as FUSE does when two processes make a file at once.
  constexpr std::string_view deleted = " (deleted)";
  if (name.ends_with(deleted)) name.remove_suffix(deleted.size());
  return std::string(name);
}

namespace {

// "PATH: what is the matter", or "row 7 of PATH: ...", by whatever directories lead there. Anywhere else a name may be just a word.
bool is_about(std::string_view sentence, std::string_view path) {
  const size_t colon = sentence.find(": ");
  std::string_view subject = sentence.substr(0, colon);
  if (colon == sentence.npos || path.empty() || !subject.ends_with(path)) return false;
  if (const size_t of = subject.rfind(" of ", subject.size() - path.size()); of != subject.npos) subject.remove_prefix(of + 4);
  return subject == path || (subject.starts_with('/') && subject[subject.size() - path.size() - 1] == '/');
}

// Whether a line is to be said, which has come so many times with this one: the first time, and each time their number has doubled. A program that
// does not look at what write answers fails a million times, and its lines would fill what its log lies on. Lines that differ in numbers are the same.
bool is_said(const std::string& path, const std::string& line, uint64_t& times) {
  constexpr size_t most_lines = 1000;
  static std::mutex mutex;
  static auto& said = *new std::unordered_map<std::string, uint64_t>;
  const std::unique_lock lock(mutex, std::try_to_lock);  // a child of a fork may find it held for ever
  times = 1;
  if (!lock) return true;
  if (said.size() >= most_lines) said.clear();
  std::string key = path + '\n';
  std::copy_if(line.begin(), line.end(), std::back_inserter(key), [](char c) { return c < '0' || c > '9'; });
  times = ++said[key];
  return std::has_single_bit(times);
}

}  // namespace

namespace {

__thread HeldComplaints* held_back __attribute__((tls_model("initial-exec"))) = nullptr;

}  // namespace

HeldComplaints::HeldComplaints() : before_(held_back) { held_back = this; }
HeldComplaints::~HeldComplaints() { held_back = before_; }

void complain(const std::string& path, const std::string& sentence) {
  const KeepErrno keep;
  if (held_back) return held_back->lines.push_back({path, sentence});
  std::string line = is_about(sentence, path) ? fmt::format("holdfast: {}", sentence) : fmt::format("holdfast: {}: {}", path, sentence);
  uint64_t times = 1;
  if (!is_said(path, line, times)) return;
  line += times > 1 ? fmt::format(" ({} times so far)\n", times) : "\n";
  (void)!raw::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace holdfast::intercept::posix
