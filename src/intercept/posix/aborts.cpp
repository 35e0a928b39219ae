#include "intercept/posix/aborts.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <charconv>
#include <string_view>
#include <utility>

#include "base/config.hpp"
#include "base/raw_syscalls.hpp"
#include "frontend/posix/abort.hpp"
#include "frontend/posix/own_code.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/paths.hpp"

namespace holdfast::intercept::posix {

namespace {

bool is_abort(std::string_view text) {
  constexpr size_t length_before = 6;  // PMI-2's: how many bytes follow, in digits
  constexpr std::string_view begins = "cmd=abort";
  return text.starts_with(begins) || (text.size() > length_before && text.substr(length_before).starts_with(begins));
}

using Inode = std::pair<dev_t, ino_t>;
Inode launchers_inode;

// {0, 0} where the number is not open.
Inode inode_of(int fd) {
  struct stat there {};
  return raw::fstatat(fd, "", &there, AT_EMPTY_PATH) == 0 ? Inode(there.st_dev, there.st_ino) : Inode();
}

__attribute__((constructor)) void at_start() {
  const std::string number = environment_variable("PMI_FD");
  int fd = -1;
  if (std::from_chars(number.data(), number.data() + number.size(), fd).ec == std::errc()) launchers_number = fd, launchers_inode = inode_of(fd);
}

}  // namespace

// A program that has the number for a file of its own by now may write there what it wants.
void is_told_to_launcher(const void* text, size_t bytes) {
  if (launchers_number < 0 || !of_this_process() || !is_abort({static_cast<const char*>(text), bytes})) return;
  const frontend::posix::OurCode ours_now;
  if (launchers_inode == Inode() || inode_of(launchers_number) != launchers_inode) return;
  if (const Status written = frontend::posix::leaves_by_abort(); !written.ok()) complain("a file", written.sentence());
}

}  // namespace holdfast::intercept::posix
