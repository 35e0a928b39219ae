// operator new and delete of the preloaded libraries alone (hidden, like all that is no door). In a replica they take memory from the region of base/own_heap.hpp:
// programs that sort by address or print one do the same in all teams, whatever Holdfast has done in between. Elsewhere it is malloc(3).
#include <pthread.h>

#include <cstdlib>
#include <new>

#include "base/environment.hpp"
#include "base/own_heap.hpp"
#include "redundant/orders.hpp"

namespace holdfast::own_memory {
namespace {

constinit OwnHeap own_heap;

// Asked at the first allocation, when nothing of the library is initialised yet: the variable is taken away later (frontend/posix/taking_part.cpp).
bool is_of_a_replica() {
  static const bool is = [] {
    if (!environment_has(redundant::orders_variable)) return false;
    ::pthread_atfork([] { own_heap.lock(); }, [] { own_heap.unlock(); }, [] { own_heap.unlock(); });
    return true;
  }();
  return is;
}

void* allocate(size_t size, size_t alignment) {
  if (is_of_a_replica())
    if (void* block = own_heap.allocate(size, alignment)) return block;
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return std::malloc(size ? size : 1);
  return std::aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
}

void* allocate_or_throw(size_t size, size_t alignment) {
  while (true) {
    if (void* block = allocate(size, alignment)) return block;
    const auto handler = std::get_new_handler();
    if (!handler) throw std::bad_alloc();
    handler();
  }
}

void release(void* block) {
  if (OwnHeap::holds(block)) own_heap.release(block);
  else std::free(block);
}

constexpr size_t usual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace
}  // namespace holdfast::own_memory

// The other forms (of arrays, of a size that is known, without an exception) call these: [new.delete] in the C++ standard.
void* operator new(size_t size) { return holdfast::own_memory::allocate_or_throw(size, holdfast::own_memory::usual); }
void* operator new(size_t size, std::align_val_t alignment) { return holdfast::own_memory::allocate_or_throw(size, size_t(alignment)); }
void operator delete(void* block) noexcept { holdfast::own_memory::release(block); }
void operator delete(void* block, std::align_val_t) noexcept { holdfast::own_memory::release(block); }
void operator delete(void* block, size_t) noexcept { holdfast::own_memory::release(block); }
