#include "intercept/posix/descriptor_names.hpp"

#include <charconv>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "base/raw_syscalls.hpp"
#include "intercept/posix/copies.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/stand_in.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::intercept::posix {

namespace {

bool take(std::string_view& text, std::string_view head) {
  if (!text.starts_with(head)) return false;
  text.remove_prefix(head.size());
  return true;
}

// Takes the digits off.
int take_number(std::string_view& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.front() == '-') return -1;
  text.remove_prefix(size_t(end - text.data()));
  return number;
}

// Leaves what comes behind "/proc/self" or a name like it.
bool take_this_process(std::string_view& text) {
  if (!take(text, "/proc/")) return false;
  if (take(text, "self/task/")) return take_number(text) >= 0;
  if (take(text, "self") || take(text, "thread-self")) return true;
  return take_number(text) == getpid();
}

int number_in_directory(const char* path) {
  std::string_view text(path);
  if (!take(text, "/dev/fd/") && !(take_this_process(text) && take(text, "/fd/"))) return -1;
  const int number = take_number(text);
  return text.empty() ? number : -1;
}

}  // namespace

int number_named(const char* path) {
  if (!path || (std::strncmp(path, "/proc/", 6) != 0 && std::strncmp(path, "/dev/", 5) != 0)) return -1;
  constexpr const char* standard[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
  for (int number = 0; number <= last_standard_number; ++number)
    if (std::strcmp(path, standard[number]) == 0) return number;
  return number_in_directory(path);
}

int served_number_named(const char* path) {
  const int number = inside > 0 ? -1 : number_named(path);
  if (number < 0) return -1;
  const KeepErrno keep;
  return find_or_adopt(number) ? number : -1;
}

std::string path_instead(const char* path) {
  const KeepErrno keep;
  const int number = served_number_named(path);
  const auto file = number >= 0 ? find(number) : nullptr;
  if (!file && inside == 0 && number_named(path) >= 0) return path_of_copy(number_named(path));
  if (!file) {
    const bool of_another = inside == 0 && number_named(path) < 0 && path && std::strncmp(path, "/proc/", 6) == 0 && std::strstr(path, "/fd/");
    return of_another ? path_of_another(path) : "";
  }
  const OurCode ours_now;
  if (!file->is_plain() || holdfast::redundant::Replica::now()) return file->path();  // numbers differ from replica to replica
  const auto native = file->native_descriptor();
  return native ? fmt::format("/proc/self/fd/{}", *native) : file->path();
}

std::string path_shown(const char* path) {
  if (number_named(path) < 0 || number_in_directory(path) < 0) return "";
  const int number = served_number_named(path);
  const auto file = number >= 0 ? find(number) : nullptr;
  if (!file) return inside > 0 ? "" : path_of_copy(number_named(path));
  const KeepErrno keep;
  const OurCode ours_now;
  return file->path();
}

}  // namespace holdfast::intercept::posix
