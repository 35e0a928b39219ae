#include "catalog/executable.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/raw_syscalls.hpp"

namespace holdfast::catalog {

namespace {

bool is_linked_statically(const char* path) {
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

}  // namespace

bool takes_no_library(const char* path) {
  struct stat state;
  if (raw::fstatat(AT_FDCWD, path, &state, 0) != 0 || !S_ISREG(state.st_mode)) return false;
  // The dynamic linker looks at whether the rights change, not at the bits.
  if ((state.st_mode & S_ISUID) && state.st_uid != getuid()) return true;
  if ((state.st_mode & S_ISGID) && state.st_gid != getgid()) return true;
  return is_linked_statically(path);
}

}  // namespace holdfast::catalog
