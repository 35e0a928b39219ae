// The code against the library under it, in turn in one run: Code::encode and Code::reconstruct beside plain calls of
// ISA-L with ready tables on the same bytes, and the checksums beside a plain XXH3. Wanted: ratio >= 0.95.
#include <benchmark/benchmark.h>
#include <isa-l/erasure_code.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "coding/checksum.hpp"
#include "coding/code.hpp"
#include "coding/xxh3.hpp"

namespace {

using namespace holdfast;

constexpr size_t alignment = 64;

struct Units {
  Units(int count, size_t bytes) {
    std::mt19937_64 random(1);
    for (int u = 0; u < count; ++u) {
      auto* unit = static_cast<std::byte*>(std::aligned_alloc(alignment, round_up(bytes, alignment)));
      for (size_t i = 0; i < bytes; ++i) unit[i] = std::byte(random());
      pointers.push_back(unit);
    }
  }
  ~Units() {
    for (auto* unit : pointers) std::free(unit);
  }
  unsigned char** raw() { return reinterpret_cast<unsigned char**>(pointers.data()); }
  std::vector<std::byte*> pointers;
};

// Arguments: k, m, unit in KiB.
void shapes(benchmark::internal::Benchmark* b) {
  for (auto [k, m] : {std::pair{4, 2}, {8, 3}, {16, 8}})
    for (int kib : {64, 1024}) b->Args({k, m, kib});
  b->ArgNames({"k", "m", "KiB"});
}

struct Shape {
  explicit Shape(const benchmark::State& s) : k(int(s.range(0))), m(int(s.range(1))), bytes(size_t(s.range(2)) << 10) {}
  int k, m;
  size_t bytes;
};

void encode_isal(benchmark::State& state) {
  const Shape s(state);
  Units units(s.k + s.m, s.bytes);
  std::vector<unsigned char> matrix(size_t(s.k + s.m) * size_t(s.k)), tables(32 * size_t(s.k) * size_t(s.m));
  gf_gen_cauchy1_matrix(matrix.data(), s.k + s.m, s.k);
  ec_init_tables(s.k, s.m, &matrix[size_t(s.k) * size_t(s.k)], tables.data());
  for (auto _ : state) ec_encode_data(int(s.bytes), s.k, s.m, tables.data(), units.raw(), units.raw() + s.k);
  state.SetBytesProcessed(int64_t(state.iterations()) * int64_t(s.bytes) * s.k);
}
BENCHMARK(encode_isal)->Apply(shapes);

void encode_holdfast(benchmark::State& state) {
  const Shape s(state);
  Units units(s.k + s.m, s.bytes);
  auto code = coding::Code::make(s.k, s.m);
  for (auto _ : state) code->encode(units.pointers.data(), units.pointers.data() + s.k, s.bytes);
  state.SetBytesProcessed(int64_t(state.iterations()) * int64_t(s.bytes) * s.k);
}
BENCHMARK(encode_holdfast)->Apply(shapes);

// The same (k + m) MiB for units of any size: whether large units are coded as fast as small ones.
void encode_mebibytes(benchmark::State& state) {
  const Shape s(state);
  const size_t width = size_t(s.k + s.m);
  Units all(1, width << 20);
  auto code = coding::Code::make(s.k, s.m);
  std::vector<std::byte*> row(width);
  for (auto _ : state)
    for (size_t at = 0; at < width << 20; at += width * s.bytes) {
      for (size_t u = 0; u < width; ++u) row[u] = all.pointers[0] + at + u * s.bytes;
      code->encode(row.data(), row.data() + s.k, s.bytes);
    }
  state.SetBytesProcessed(int64_t(state.iterations()) * int64_t(s.k) << 20);
}
BENCHMARK(encode_mebibytes)->Apply(shapes);

// The first m data units are gone: as many outputs as encoding has.
void reconstruct_isal(benchmark::State& state) {
  const Shape s(state);
  Units units(s.k + s.m, s.bytes);
  const size_t k = size_t(s.k);
  std::vector<unsigned char> matrix(size_t(s.k + s.m) * k), inverse(k * k), tables(32 * k * size_t(s.m));
  gf_gen_cauchy1_matrix(matrix.data(), s.k + s.m, s.k);
  gf_invert_matrix(&matrix[size_t(s.m) * k], inverse.data(), s.k);
  ec_init_tables(s.k, s.m, inverse.data(), tables.data());
  for (auto _ : state) ec_encode_data(int(s.bytes), s.k, s.m, tables.data(), units.raw() + s.m, units.raw());
  state.SetBytesProcessed(int64_t(state.iterations()) * int64_t(s.bytes) * s.k);
}
BENCHMARK(reconstruct_isal)->Apply(shapes);

void reconstruct_holdfast(benchmark::State& state) {
  const Shape s(state);
  Units units(s.k + s.m, s.bytes);
  auto code = coding::Code::make(s.k, s.m);
  std::vector<int> survivors(size_t(s.k)), wanted(size_t(s.m));
  std::iota(survivors.begin(), survivors.end(), s.m);
  std::iota(wanted.begin(), wanted.end(), 0);
  for (auto _ : state) {
    Status status = code->reconstruct(survivors, units.pointers.data() + s.m, wanted, units.pointers.data(), s.bytes);
    if (!status.ok()) state.SkipWithError(status.sentence().c_str());
  }
  state.SetBytesProcessed(int64_t(state.iterations()) * int64_t(s.bytes) * s.k);
}
BENCHMARK(reconstruct_holdfast)->Apply(shapes);

// The same hash as the distribution's library computes it, and each of ours that can run here.
void checksum_of(benchmark::State& state, uint64_t (*hash)(const void*, size_t, uint64_t), const char* needs) {
#ifdef __x86_64__
  const std::string feature = needs;
  if ((feature == "avx2" && !__builtin_cpu_supports("avx2")) || (feature == "avx512f" && !__builtin_cpu_supports("avx512f")))
    return state.SkipWithError("not on this processor");
#endif
  const size_t bytes = size_t(state.range(0)) << 10;
  Units units(1, bytes);
  for (auto _ : state) benchmark::DoNotOptimize(hash(units.pointers[0], bytes, 1));
  state.SetBytesProcessed(int64_t(state.iterations()) * int64_t(bytes));
}
BENCHMARK_CAPTURE(checksum_of, library, coding::xxh3_baseline, "")->ArgName("KiB")->Arg(4)->Arg(32);
#ifdef __x86_64__
BENCHMARK_CAPTURE(checksum_of, avx2, coding::xxh3_avx2, "avx2")->ArgName("KiB")->Arg(4)->Arg(32);
BENCHMARK_CAPTURE(checksum_of, avx512, coding::xxh3_avx512, "avx512f")->ArgName("KiB")->Arg(4)->Arg(32);
#endif

void checksum_holdfast(benchmark::State& state) {
  const size_t bytes = size_t(state.range(0)) << 10;
  Units units(1, bytes);
  for (auto _ : state) benchmark::DoNotOptimize(coding::block_checksum(1, 2, 3, 4, {units.pointers[0], bytes}));
  state.SetBytesProcessed(int64_t(state.iterations()) * int64_t(bytes));
}
BENCHMARK(checksum_holdfast)->ArgName("KiB")->Arg(4)->Arg(32);

}  // namespace

BENCHMARK_MAIN();
