// Nothing but xxhash.h may be included after the pragma: a shared inline function compiled here would run on
// processors that lack the instructions. Compilers that do not know the pragma build the baseline again.
#include <cstddef>
#include <cstdint>

#ifdef XXH_VERSION_NUMBER
#error "compile this source by itself (cmake/Together.cmake): xxhash.h was included before, and is not compiled anew for these instructions"
#endif
#ifdef __x86_64__
#if defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // g++ 12 warns of its own headers
#pragma GCC optimize("O3")
#pragma GCC target("avx512f")
// Said by name: g++ reads all of a file before it heeds the pragma, so that the header would see a processor without these instructions.
#define XXH_VECTOR XXH_AVX512
#endif
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "coding/xxh3.hpp"

namespace holdfast::coding {

uint64_t xxh3_avx512(const void* content, size_t bytes, uint64_t seed) { return XXH3_64bits_withSeed(content, bytes, seed); }

}  // namespace holdfast::coding
#endif
