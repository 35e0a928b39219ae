#include "catalog/executable.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/raw_syscalls.hpp"

namespace holdfast::catalog {

namespace {

// Of a 64-bit image. False where it is none.
bool read_header(const raw::Fd& file, Elf64_Ehdr& header) {
  if (!file || raw::pread(file.get(), &header, sizeof header, 0) != ssize_t(sizeof header)) return false;
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64;
}

bool read_segment(const raw::Fd& file, const Elf64_Ehdr& header, int i, Elf64_Phdr& segment) {
  return raw::pread(file.get(), &segment, sizeof segment, header.e_phoff + uint64_t(i) * sizeof segment) == ssize_t(sizeof segment);
}

// Go's linker leaves a note of its own in each program.
bool has_note_of_go(const raw::Fd& file, const Elf64_Phdr& segment) {
  if (segment.p_type != PT_NOTE) return false;
  char notes[4096];
  const ssize_t bytes = raw::pread(file.get(), notes, std::min<uint64_t>(segment.p_filesz, sizeof notes), segment.p_offset);
  // In units of four also where the segment is aligned to eight. Some linkers put notes of both kinds into one, and those of eight fill their units.
  const auto padded = [](uint64_t size) { return (size + 3) / 4 * 4; };
  for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) + sizeof "Go" <= uint64_t(std::max<ssize_t>(bytes, 0));) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes + at, sizeof note);
    if (note.n_namesz >= sizeof "Go" && std::memcmp(notes + at + sizeof note, "Go", sizeof "Go") == 0) return true;
    at += sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
  }
  return false;
}

// Whether one of its segments is what is looked for; nothing where it is no such image.
std::optional<bool> any_segment(const char* path, bool (*is)(const raw::Fd&, const Elf64_Phdr&)) {
  const raw::Fd file(raw::openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
  Elf64_Ehdr header;
  if (!read_header(file, header)) return {};
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_segment(file, header, i, segment)) return {};
    if (is(file, segment)) return true;
  }
  return false;
}

bool names_a_linker(const raw::Fd&, const Elf64_Phdr& segment) { return segment.p_type == PT_INTERP; }

}  // namespace

bool takes_no_library(const char* path) {
  struct stat state;
  if (raw::fstatat(AT_FDCWD, path, &state, 0) != 0 || !S_ISREG(state.st_mode)) return false;
  // The dynamic linker looks at whether the rights change, not at the bits.
  if ((state.st_mode & S_ISUID) && state.st_uid != getuid()) return true;
  if ((state.st_mode & S_ISGID) && state.st_gid != getgid()) return true;
  return any_segment(path, names_a_linker) == false;
}

bool makes_own_calls(const char* path) { return any_segment(path, has_note_of_go) == true; }

}  // namespace holdfast::catalog
