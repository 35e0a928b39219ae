// Doors to another image, and to other processes: what was written is on storage before they look. A protected file's descriptor crosses
// an exec by itself (descriptors.hpp).
#include <elf.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cstring>
#include <vector>

#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/stand_in.hpp"

extern char** environ;

namespace {

using namespace holdfast::intercept::posix;
using holdfast::frontend::posix::OpenFile;
namespace raw = holdfast::raw;

// Whether an image is one that no library can be preloaded into: linked statically, or with its owner's rights.
bool is_out_of_reach(const char* path) {
  struct stat state;
  if (raw::fstatat(AT_FDCWD, path, &state, 0) != 0) return false;
  if (state.st_mode & (S_ISUID | S_ISGID)) return true;
  const raw::Fd file(raw::openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
  Elf64_Ehdr header;
  if (!file || raw::pread(file.get(), &header, sizeof header, 0) != ssize_t(sizeof header)) return false;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (raw::pread(file.get(), &segment, sizeof segment, header.e_phoff + uint64_t(i) * sizeof segment) != ssize_t(sizeof segment)) return false;
    if (segment.p_type == PT_INTERP) return false;
  }
  return true;
}

void warn_of(const char* path) {
  const OurCode ours_now;
  if (!path || !std::strchr(path, '/') || !inherits_any() || !is_out_of_reach(path)) return;
  complain(path, "is linked statically or runs with other rights, so Holdfast cannot serve it: the descriptors of protected files that "
                 "it inherits are closed to it");
}

// The exec itself; back only where it failed.
template <class Native>
int become(const char* path, Native native) {
  if (inside > 0 || !of_this_process() || !any_watched()) return native();
  warn_of(path);
  give_numbers_back();
  (void)let_go_of_all();
  const int result = native();
  const int error = errno;
  stand_in_again();
  return errno = error, result;
}

// Another process that may look at files by name, or through what it inherits.
template <class Native>
auto start(const char* path, Native native) -> decltype(native()) {
  if (inside == 0 && of_this_process() && any_watched()) {
    warn_of(path);
    (void)let_go_of_all();
  }
  return native();
}

// The words of execl and its kin, the closing null included.
std::vector<char*> words_of(const char* first, va_list arguments) {
  std::vector<char*> words{const_cast<char*>(first)};
  while (words.back()) words.push_back(va_arg(arguments, char*));
  return words;
}

}  // namespace

HF_DOOR int execve(const char* path, char* const* words, char* const* environment) noexcept {
  return become(path, [=] { return real().execve(path, words, environment); });
}
HF_DOOR int execv(const char* path, char* const* words) noexcept {
  return become(path, [=] { return real().execve(path, words, environ); });
}
HF_DOOR int execvp(const char* path, char* const* words) noexcept {
  return become(path, [=] { return real().execvpe(path, words, environ); });
}
HF_DOOR int execvpe(const char* path, char* const* words, char* const* environment) noexcept {
  return become(path, [=] { return real().execvpe(path, words, environment); });
}
HF_DOOR int fexecve(int fd, char* const* words, char* const* environment) noexcept {
  return become(nullptr, [=] { return real().fexecve(fd, words, environment); });
}
HF_DOOR int execl(const char* path, const char* first, ...) noexcept {
  va_list arguments;
  va_start(arguments, first);
  const std::vector<char*> words = words_of(first, arguments);
  va_end(arguments);
  return execv(path, words.data());
}
HF_DOOR int execlp(const char* path, const char* first, ...) noexcept {
  va_list arguments;
  va_start(arguments, first);
  const std::vector<char*> words = words_of(first, arguments);
  va_end(arguments);
  return execvp(path, words.data());
}
HF_DOOR int execle(const char* path, const char* first, ...) noexcept {
  va_list arguments;
  va_start(arguments, first);
  const std::vector<char*> words = words_of(first, arguments);
  char* const* environment = va_arg(arguments, char* const*);
  va_end(arguments);
  return execve(path, words.data(), environment);
}
HF_DOOR int posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
                        char* const* words, char* const* environment) {
  return start(path, [=] { return real().posix_spawn(child, path, actions, attributes, words, environment); });
}
HF_DOOR int posix_spawnp(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
                         char* const* words, char* const* environment) {
  return start(path, [=] { return real().posix_spawnp(child, path, actions, attributes, words, environment); });
}
HF_DOOR int system(const char* command) {
  return start(nullptr, [=] { return real().system(command); });
}
HF_DOOR FILE* popen(const char* command, const char* mode) {
  return start(nullptr, [=] { return real().popen(command, mode); });
}
