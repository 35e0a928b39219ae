// Descriptors of protected files. Each is a real descriptor of the kernel: its number belongs to nobody else, it survives dup, fork and
// exec as any other. What it leads to is the memory that holds the open file's position and flags (frontend/posix/open_state.hpp). It is opened with
// O_PATH, so that a door that we do not watch answers EBADF rather than bytes that are not the file's.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "base/raw_syscalls.hpp"
#include "base/status.hpp"
#include "frontend/posix/description.hpp"
#include "intercept/posix/real.hpp"

namespace holdfast::intercept::posix {

using frontend::posix::Description;
using frontend::posix::ProcessFile;

inline constexpr int most_descriptors = 65536;

// What a door asks first, without a lock.
extern std::array<std::atomic<bool>, most_descriptors> watched_numbers;
inline bool is_watched(int fd) {
  return unsigned(fd) < unsigned(most_descriptors) && watched_numbers[size_t(fd)].load(std::memory_order_acquire) && inside == 0;
}

std::shared_ptr<Description> find_watched(int fd);
// Null for any other descriptor: one load for those that are not ours.
inline std::shared_ptr<Description> find(int fd) { return is_watched(fd) ? find_watched(fd) : nullptr; }
// `fd` came from a process that knew it as a protected file's (exec, a socket). Null if it did not. Leaves errno as it is.
std::shared_ptr<Description> adopt(int fd);
// Where a protected file, or one with buffers, is by the descriptor of another process, /proc/PID/fd/N. Empty for any other path.
std::string path_of_another(const char* proc_path);
// What `find` says, or, after a call on `fd` failed with EBADF, what `adopt` says.
std::shared_ptr<Description> find_after_failure(int fd);
// What `find` says, or `adopt`: for doors whose native call would succeed on the number alone.
std::shared_ptr<Description> find_or_adopt(int fd);

// A number for a file that is about to be opened: the lowest free one, or `fd` where the program's open has given one already.
class NewNumber {
 public:
  explicit NewNumber(int flags, int fd = -1) : flags_(flags), fd_(fd) {}
  ~NewNumber();
  NewNumber(const NewNumber&) = delete;
  NewNumber& operator=(const NewNumber&) = delete;
  // -1 and errno.
  int reserve();
  // The number is the file's from here on. -1 and errno.
  int give(std::shared_ptr<frontend::posix::ProcessFile> file, uint64_t device);

 private:
  const int flags_;
  int fd_;
  int memory_ = -1;
};

// On the numbers that the C library itself uses (and, with `always`, on any).
void stand_in_where_needed(int fd, const std::shared_ptr<Description>& description, bool always = false);
void set(int fd, std::shared_ptr<Description> description);
// The failure that close has to return: of the last number of a description in this process. A child of vfork does nothing.
Status forget(int fd);
void forget_range(unsigned first, unsigned last);
// False in a child of vfork, which runs in its parent's memory and must not touch its files.
bool of_this_process();
// Whether any number is a protected file's; whether an image after exec would inherit one.
bool any_watched();
bool inherits_any();
void give_natives_to_append();
// At exit and before exec: what was written goes into the files. What fails is said on standard error.
Status let_go_of_all();
// Before another process is started, or another image: it shares the locks of what it inherits.
void share_locks();

}  // namespace holdfast::intercept::posix
