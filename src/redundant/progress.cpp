#include "redundant/progress.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "base/own_numbers.hpp"

namespace holdfast::redundant {

Progress::Progress() {
  raw::Fd memory = raw::out_of_the_way(raw::Fd(int(syscall(SYS_memfd_create, "holdfast: progress", MFD_CLOEXEC))));
  if (!memory || raw::ftruncate(memory.get(), sizeof(Page)) != 0) return;
  void* const at = raw::mmap(sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (at == MAP_FAILED) return;
  page_ = new (at) Page;
  memory_ = std::move(memory);
}

std::optional<HowFar> Progress::read(int memory) {
  HowFar far;
  static_assert(sizeof far == sizeof(Page));
  if (raw::pread(memory, &far, sizeof far, 0) != ssize_t(sizeof far)) return std::nullopt;
  return far;
}

}  // namespace holdfast::redundant
