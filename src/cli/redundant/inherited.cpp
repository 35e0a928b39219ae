#include "cli/redundant/inherited.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "catalog/user_files.hpp"

namespace holdfast::cli {

namespace {

std::string link_of(int number) { return fmt::format("/proc/self/fd/{}", number); }

// Each use stands for itself there: /dev/null and its kin, and what can only be looked at.
bool is_nobodys(const struct stat& state, int number, int flags) { return (flags & O_PATH) || (S_ISCHR(state.st_mode) && !::isatty(number)); }

}  // namespace

Inherited Inherited::here() {
  Inherited found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const std::string word = entry.path().filename();
    int number = -1;
    std::from_chars(word.data(), word.data() + word.size(), number);
    struct stat state {};
    const int closes = ::fcntl(number, F_GETFD), flags = ::fcntl(number, F_GETFL);
    if (number <= STDERR_FILENO || closes < 0 || (closes & FD_CLOEXEC) || ::fstat(number, &state) != 0 || is_nobodys(state, number, flags)) continue;
    const bool is_read = (S_ISREG(state.st_mode) || S_ISDIR(state.st_mode)) && (flags & O_ACCMODE) == O_RDONLY;
    const auto name = catalog::read_link(link_of(number));
    found.all_.push_back({number, flags, ::lseek(number, 0, SEEK_CUR), is_read && ::access(link_of(number).c_str(), R_OK) == 0, name ? *name : "?"});
  }
  std::sort(found.all_.begin(), found.all_.end(), [](const One& one, const One& other) { return one.number < other.number; });
  return found;
}

std::string Inherited::said() const {
  std::vector<std::string> closed;
  for (const One& one : all_)
    if (!one.is_read) closed.push_back(fmt::format("{} ({})", one.number, one.name));
  if (closed.empty()) return "";
  const bool several = closed.size() > 1;
  return fmt::format(
      "the replicas do not get descriptor{} {}, for each of them would use {}: let the program open a file by its name, or use standard input and "
      "output",
      several ? "s" : "", fmt::join(closed, ", "), several ? "them" : "it");
}

void Inherited::hand_on() const {
  for (const One& one : all_) {
    const int own = one.is_read ? ::open(link_of(one.number).c_str(), (one.flags & ~(O_CREAT | O_EXCL | O_TRUNC)) | O_CLOEXEC) : -1;
    if (own < 0) {
      ::close(one.number);
      continue;
    }
    (void)::lseek(own, one.at, SEEK_SET);
    ::dup2(own, one.number);
    ::close(own);
  }
}

}  // namespace holdfast::cli
