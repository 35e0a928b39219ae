// XXH3 compiled for what the processor can do. The distribution's library is built for the oldest x86-64 and hashes
// several times slower than these; the values are the same.
#pragma once
#include <cstddef>
#include <cstdint>

namespace holdfast::coding {

uint64_t xxh3(const void* content, size_t bytes, uint64_t seed);  // the fastest of those below that can run here

uint64_t xxh3_baseline(const void* content, size_t bytes, uint64_t seed);
#ifdef __x86_64__
uint64_t xxh3_avx2(const void* content, size_t bytes, uint64_t seed);
uint64_t xxh3_avx512(const void* content, size_t bytes, uint64_t seed);
#endif

}  // namespace holdfast::coding
