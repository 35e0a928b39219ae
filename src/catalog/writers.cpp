#include "catalog/writers.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <charconv>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "base/process_facts.hpp"
#include "base/raw_syscalls.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::catalog {

namespace {

constexpr size_t most_map_bytes = 8 << 20;

bool is_number(const std::string& name) { return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos; }

// "flags:" of its fdinfo, in octal.
bool is_to_write(const std::string& fdinfo) {
  constexpr std::string_view key = "flags:\t";
  const size_t at = fdinfo.find(key);
  int flags = O_RDONLY;
  if (at != std::string::npos) std::from_chars(fdinfo.data() + at + key.size(), fdinfo.data() + fdinfo.size(), flags, 8);
  return (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH);
}

bool has_open(const std::string& process, const struct stat& file) {
  const auto numbers = list_directory(process + "/fd");
  if (!numbers) return false;  // another user's, or it has ended
  for (const std::string& number : *numbers) {
    struct stat state;
    if (raw::fstatat(AT_FDCWD, fmt::format("{}/fd/{}", process, number).c_str(), &state, 0) != 0) continue;
    const bool is_it = state.st_dev == file.st_dev && state.st_ino == file.st_ino;
    if (is_it && is_to_write(small_file(fmt::format("{}/fdinfo/{}", process, number)))) return true;
  }
  return false;
}

// Lines like "7f12c000-7f12d000 rw-s 00000000 fd:01 1234  /path".
bool has_mapped(const std::string& process, const struct stat& file) {
  const auto text = read_beginning(process + "/maps", most_map_bytes);
  if (!text) return false;
  const std::string device = fmt::format("{:02x}:{:02x}", major(file.st_dev), minor(file.st_dev)), inode = std::to_string(file.st_ino);
  std::istringstream lines(*text);
  for (std::string line, where, how, offset, on, number; std::getline(lines, line);) {
    std::istringstream words(line);
    if (words >> where >> how >> offset >> on >> number && number == inode && on == device && how.starts_with("rw") && how.ends_with("s"))
      return true;
  }
  return false;
}

}  // namespace

bool is_open_to_write(int fd) {
  struct stat file;
  if (raw::fstatat(fd, "", &file, AT_EMPTY_PATH) != 0) return false;
  const auto processes = list_directory("/proc");
  if (!processes) return false;
  for (const std::string& name : *processes)
    if (const std::string process = "/proc/" + name; is_number(name) && (has_open(process, file) || has_mapped(process, file))) return true;
  return false;
}

}  // namespace holdfast::catalog
