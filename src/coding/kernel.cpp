#include "coding/kernel.hpp"

#include <algorithm>
#include <array>

#include <isa-l/erasure_code.h>

namespace holdfast::coding {

namespace {

// Some of ISA-L's AVX kernels (those for more than a few rows) return with the registers' upper halves in use. All SSE code that runs afterwards, the
// program's own included, is then slowed down (measured: a hash by 4 times).
void clear_upper_registers() {
#ifdef __x86_64__
  static const bool avx = __builtin_cpu_supports("avx");
  if (avx) asm volatile("vzeroupper" ::: "memory");
#endif
}

// For more than a few rows ISA-L's kernels pass over the sources several times. From the second pass on they should lie in the second-level
// cache. Measured, 16+8 with units of 1 MiB and AVX-512: strips of 8 KiB 1.5 to 1.6 times as fast as whole units, of 128 KiB 1.05 times. 4+2 and 8+3
// are done in one pass, and as fast either way.
size_t strip_of(const Tables& tables) {
  constexpr size_t cached_bytes = 256 << 10, page = 4096;
  return std::max<size_t>(2, cached_bytes / page / size_t(tables.k + tables.rows)) * page;
}

}  // namespace

Tables::Tables(int k, int rows, const unsigned char* matrix) : k(k), rows(rows), expanded(32 * size_t(k) * size_t(rows)) {
  ec_init_tables(k, rows, const_cast<unsigned char*>(matrix), expanded.data());
}

void multiply(const Tables& tables, const std::byte* const* sources, std::byte* const* outputs, size_t bytes) {
  const size_t strip_bytes = strip_of(tables);
  std::array<unsigned char*, 40> from, to;
  for (size_t done = 0; done < bytes; done += strip_bytes) {
    const size_t now = std::min(strip_bytes, bytes - done);
    for (int i = 0; i < tables.k; ++i) from[size_t(i)] = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(sources[i])) + done;
    for (int i = 0; i < tables.rows; ++i) to[size_t(i)] = reinterpret_cast<unsigned char*>(outputs[i]) + done;
    ec_encode_data(int(now), tables.k, tables.rows, const_cast<unsigned char*>(tables.expanded.data()), from.data(), to.data());
  }
  clear_upper_registers();
}

void add_times(unsigned char coefficient, const std::byte* from, std::byte* sum, size_t bytes) {
  std::array<unsigned char, 32> table;
  ec_init_tables(1, 1, &coefficient, table.data());
  auto* source = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(from));
  auto* into = reinterpret_cast<unsigned char*>(sum);
  ec_encode_data_update(int(bytes), 1, 1, 0, table.data(), source, &into);
  clear_upper_registers();
}

}  // namespace holdfast::coding
