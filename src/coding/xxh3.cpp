#include "coding/xxh3.hpp"

#include <xxhash.h>

namespace holdfast::coding {

uint64_t xxh3_baseline(const void* content, size_t bytes, uint64_t seed) { return XXH3_64bits_withSeed(content, bytes, seed); }

namespace {
using Kernel = uint64_t (*)(const void*, size_t, uint64_t);

Kernel fastest() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return xxh3_avx512;
  if (__builtin_cpu_supports("avx2")) return xxh3_avx2;
#endif
  return xxh3_baseline;
}
}  // namespace

uint64_t xxh3(const void* content, size_t bytes, uint64_t seed) {
  static const Kernel kernel = fastest();
  return kernel(content, bytes, seed);
}

}  // namespace holdfast::coding
