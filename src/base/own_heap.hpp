// Memory that leaves the program's heap alone. What a preloaded library allocates decides where the program's next malloc(3) lies, and replicas of one
// process allocate differently: a leader decides what a follower is told. In a region far from where kernels put things, their programs see equal addresses.
#pragma once
#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace holdfast {

class OwnHeap {
 public:
  static constexpr uintptr_t begins = 0x300000000000;  // 48 TiB: below the mappings of programs, above their heaps
  static constexpr uintptr_t ends = 0x380000000000;

  // Of at least `size` bytes, aligned to `alignment`, a power of two. Null: no memory, or the region is not to be had; malloc(3) may have some.
  void* allocate(size_t size, size_t alignment);
  void release(void* block);
  static bool holds(const void* block) { return uintptr_t(block) >= begins && uintptr_t(block) < ends; }

  // Around a fork(2), as malloc(3) does it: the child finds the heap as between two calls.
  void lock() { ::pthread_mutex_lock(&mutex_); }
  void unlock() { ::pthread_mutex_unlock(&mutex_); }

 private:
  static constexpr size_t classes = 160;
  struct Free {
    Free* next;
  };
  void* carve(size_t bytes);
  void* map(size_t bytes);

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  Free* free_[classes] = {};
  uintptr_t next_ = begins;             // where the next mapping goes
  uintptr_t slab_ = 0, slab_ends_ = 0;  // what small blocks are cut from
};

}  // namespace holdfast
