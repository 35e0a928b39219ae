#include "base/own_heap.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/raw_syscalls.hpp"

namespace holdfast {

namespace {

// Before each block: which class it is of, and how far its beginning is.
struct Header {
  size_t size_class, distance;
};
static_assert(sizeof(Header) == 16);  // what follows is aligned as malloc(3) aligns

constexpr size_t least = 32, slab = size_t(1) << 20;
constexpr size_t alone = size_t(128) << 10;     // from here on a mapping each
constexpr size_t given_back = size_t(1) << 20;  // from here on the pages of a free block are the kernel's

// 32, 48, 64, and from there four to a doubling: 80, 96, 112, 128, 160, ...
size_t class_of(size_t bytes) {
  if (bytes <= 64) return (std::max(bytes, least) + 15) / 16 - 2;
  const size_t doubling = size_t(std::bit_width(bytes - 1)) - 1;
  return 3 + (doubling - 6) * 4 + ((bytes - 1 - (size_t(1) << doubling)) >> (doubling - 2));
}

size_t bytes_of(size_t size_class) {
  if (size_class < 3) return least + 16 * size_class;
  const size_t doubling = (size_class - 3) / 4 + 6, step = (size_class - 3) % 4 + 1;
  return (size_t(1) << doubling) + (step << (doubling - 2));
}

}  // namespace

void* OwnHeap::map(size_t bytes) {
  constexpr size_t page = size_t(1) << 16;  // the largest that kernels have
  bytes = (bytes + page - 1) / page * page;
  while (next_ + bytes <= ends) {
    const auto wanted = reinterpret_cast<void*>(next_);
    constexpr int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    void* got = reinterpret_cast<void*>(syscall(SYS_mmap, wanted, bytes, PROT_READ | PROT_WRITE, how, -1, 0L));
    if (got == wanted) {
      next_ += bytes;
      return got;
    }
    if (got != MAP_FAILED) (void)raw::munmap(got, bytes);  // a kernel that takes the place for a hint
    if (got != MAP_FAILED || errno != EEXIST) return nullptr;
    next_ += slab;  // somebody else is here
  }
  return nullptr;
}

void* OwnHeap::carve(size_t bytes) {
  if (bytes >= alone) return map(bytes);
  if (slab_ends_ - slab_ < bytes) {
    void* more = map(slab);
    if (!more) return nullptr;
    slab_ = uintptr_t(more);
    slab_ends_ = slab_ + slab;
  }
  slab_ += bytes;
  return reinterpret_cast<void*>(slab_ - bytes);
}

void* OwnHeap::allocate(size_t size, size_t alignment) {
  constexpr size_t most = size_t(1) << 42;
  if (size > most || alignment > most) return nullptr;
  const size_t more = sizeof(Header) + (alignment > sizeof(Header) ? alignment : 0);
  const size_t size_class = class_of(size + more);
  lock();
  void* block = free_[size_class];
  if (block) free_[size_class] = free_[size_class]->next;
  else block = carve(bytes_of(size_class));
  unlock();
  if (!block) return nullptr;
  const uintptr_t start = uintptr_t(block) + sizeof(Header), aligned = (start + alignment - 1) & ~(alignment - 1);
  reinterpret_cast<Header*>(aligned)[-1] = Header{size_class, aligned - uintptr_t(block)};
  return reinterpret_cast<void*>(aligned);
}

void OwnHeap::release(void* block) {
  const Header header = static_cast<Header*>(block)[-1];
  auto* start = reinterpret_cast<Free*>(uintptr_t(block) - header.distance);
  const size_t bytes = bytes_of(header.size_class);
  if (bytes >= given_back) (void)raw::madvise(start, bytes, MADV_DONTNEED);
  lock();
  start->next = free_[header.size_class];
  free_[header.size_class] = start;
  unlock();
}

}  // namespace holdfast
