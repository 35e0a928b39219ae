#include "intercept/posix/descriptor_names.hpp"

#include <charconv>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "base/in_mpi.hpp"
#include "base/raw_syscalls.hpp"
#include "file/coordinated/coordinated.hpp"
#include "intercept/posix/as_one.hpp"
#include "intercept/posix/copies.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/stand_in.hpp"
#include "redundant/subjects.hpp"
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

bool leads_to(const std::string& path, const std::string& plain_id) {
  struct stat state {};
  return !path.empty() && raw::fstatat(AT_FDCWD, path.c_str(), &state, 0) == 0 && ProcessFile::plain_id(state.st_dev, state.st_ino) == plain_id;
}

// The name of a plain file that is open by another one perhaps: another process may have renamed it. Empty where it has none any more.
std::string name_by_now(const std::string& before, int native, const std::string& id) {
  if (leads_to(before, id)) return before;
  std::string now = path_behind(native);
  return leads_to(now, id) ? now : "";
}

// Replicas open it by its name: the numbers of their own descriptors differ. The name is the leader's for all.
std::string name_for_all(redundant::Replica& replica, Description& file, const char* asked) {
  const std::string before = file.path();
  const auto native = file.native_descriptor();  // by all of them: it may have to be joined first
  std::string name;
  const auto ask = [&] {
    name = native ? name_by_now(before, *native, file.file_id()) : "";
    return Bytes(reinterpret_cast<const std::byte*>(name.data()), reinterpret_cast<const std::byte*>(name.data() + name.size()));
  };
  if (in_mpi_calls > 0 || is_each_replicas_own(replica, before)) {
    (void)ask();
  } else {
    const Bytes told = replica.answer(redundant::name_subject(file::subject_of("name of an open file", before)), ask);
    name.assign(reinterpret_cast<const char*>(told.data()), told.size());
  }
  if (!name.empty()) return name;
  complain(asked, "is " + before + ", which is gone: replicas open a file by its name; let the program use the descriptor itself");
  return before + " (deleted)";
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
  if (!file->is_plain()) return file->path();
  if (redundant::Replica* const replica = redundant::Replica::now()) return name_for_all(*replica, *file, path);
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
