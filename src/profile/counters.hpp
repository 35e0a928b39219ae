// What is counted for each file, interface and process. The names are those of the job log (docs/format-log.md), so a name never
// changes its meaning. New ones go to the end of their group and old readers ignore them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace holdfast::profile {

enum class Interface : uint8_t { mpiio, posix, stdio };
inline constexpr std::array<std::string_view, 3> interface_names{"mpi-io", "posix", "stdio"};
inline constexpr size_t interface_count = interface_names.size();

// Sizes of accesses, by Darshan's limits: up to 100 bytes, 1 kB, 10 kB, 100 kB, 1 MB, 4 MB, 10 MB, 100 MB, 1 GB (decimal), and above.
inline constexpr std::array<uint64_t, 9> size_limits{100, 1'000, 10'000, 100'000, 1'000'000, 4'000'000, 10'000'000, 100'000'000, 1'000'000'000};
inline constexpr size_t size_buckets = size_limits.size() + 1;
inline constexpr std::array<std::string_view, size_buckets> size_names{"0-100", "100-1k", "1k-10k",   "10k-100k", "100k-1M",
                                                                       "1M-4M", "4M-10M", "10M-100M", "100M-1G",  "1G+"};

inline size_t size_bucket(uint64_t bytes) {
  size_t bucket = 0;
  while (bucket < size_limits.size() && bytes > size_limits[bucket]) ++bucket;
  return bucket;
}

// How values of several processes become one: added, the largest, or the smallest that is not zero.
enum class Reduce : uint8_t { sum, most, least };

// X(name, how). The groups of ten are indexed by size_bucket(). Times in nanoseconds (in a piece: in its clock's ticks, see piece.hpp);
// first_* and last_* since the job's start (in a piece: since the process's).
// clang-format off
#define HF_PROFILE_COUNTERS(X) \
  /* the program's calls, by kind */ \
  X(opens, sum) X(closes, sum) \
  X(reads_independent, sum) X(reads_collective, sum) X(reads_shared, sum) X(reads_ordered, sum) \
  X(writes_independent, sum) X(writes_collective, sum) X(writes_shared, sum) X(writes_ordered, sum) \
  X(reads_nonblocking, sum) X(reads_split, sum) X(writes_nonblocking, sum) X(writes_split, sum) \
  X(seeks, sum) X(stats, sum) X(views, sum) X(syncs, sum) X(resizes, sum) X(renames, sum) X(unlinks, sum) X(mmaps, sum) \
  X(others, sum) X(failures, sum) \
  /* bytes and time */ \
  X(bytes_read, sum) X(bytes_written, sum) X(read_ns, sum) X(write_ns, sum) X(open_ns, sum) X(close_ns, sum) \
  X(metadata_ns, sum) X(sync_ns, sum) \
  X(slowest_read_ns, most) X(slowest_write_ns, most) X(end_of_reads, most) X(end_of_writes, most) \
  X(first_open, least) X(last_close, most) X(first_read, least) X(last_read, most) X(first_write, least) X(last_write, most) \
  /* patterns: each call with a known place is at the file's beginning (first), consecutive, forward or backward of the one before */ \
  X(reads_consecutive, sum) X(reads_forward, sum) X(reads_backward, sum) \
  X(writes_consecutive, sum) X(writes_forward, sum) X(writes_backward, sum) X(turns, sum) \
  X(reads_misaligned, sum) X(writes_misaligned, sum) \
  X(read_sizes_0, sum) X(read_sizes_1, sum) X(read_sizes_2, sum) X(read_sizes_3, sum) X(read_sizes_4, sum) X(read_sizes_5, sum) \
  X(read_sizes_6, sum) X(read_sizes_7, sum) X(read_sizes_8, sum) X(read_sizes_9, sum) \
  X(write_sizes_0, sum) X(write_sizes_1, sum) X(write_sizes_2, sum) X(write_sizes_3, sum) X(write_sizes_4, sum) X(write_sizes_5, sum) \
  X(write_sizes_6, sum) X(write_sizes_7, sum) X(write_sizes_8, sum) X(write_sizes_9, sum) \
  /* below the program's calls: the system's (for protected files on targets), and the layers */ \
  X(system_reads, sum) X(system_read_bytes, sum) X(system_read_ns, sum) \
  X(system_writes, sum) X(system_write_bytes, sum) X(system_write_ns, sum) \
  X(system_syncs, sum) X(system_sync_ns, sum) X(system_others, sum) \
  X(layer_ns, sum) X(read_modify_writes, sum) X(buffers_used, most) X(buffer_bytes, most) X(prefetches, sum) X(preflushes, sum) \
  /* parts of metadata_ns, in the order of their calls above */ \
  X(seek_ns, sum) X(stat_ns, sum) X(view_ns, sum) X(resize_ns, sum) X(rename_ns, sum) X(unlink_ns, sum) X(mmap_ns, sum) X(other_ns, sum)
// clang-format on

enum class Counter : uint8_t {
#define HF_NAME(name, how) name,
  HF_PROFILE_COUNTERS(HF_NAME)
#undef HF_NAME
};

struct CounterInfo {
  std::string_view name;
  Reduce how;
};
inline constexpr CounterInfo counter_infos[] = {
#define HF_INFO(name, how) {#name, Reduce::how},
    HF_PROFILE_COUNTERS(HF_INFO)
#undef HF_INFO
};
inline constexpr size_t counter_count = std::size(counter_infos);

// A process's or a job's values.
class Counters {
 public:
  uint64_t& operator[](Counter c) { return values_[size_t(c)]; }
  uint64_t operator[](Counter c) const { return values_[size_t(c)]; }
  uint64_t& at(size_t index) { return values_[index]; }
  uint64_t at(size_t index) const { return values_[index]; }
  uint64_t read_size(size_t bucket) const { return values_[size_t(Counter::read_sizes_0) + bucket]; }
  uint64_t write_size(size_t bucket) const { return values_[size_t(Counter::write_sizes_0) + bucket]; }

  void merge(const Counters& other) {
    for (size_t i = 0; i < counter_count; ++i) {
      uint64_t &mine = values_[i], theirs = other.values_[i];
      switch (counter_infos[i].how) {
        case Reduce::sum: mine += theirs; break;
        case Reduce::most: mine = mine < theirs ? theirs : mine; break;
        case Reduce::least: mine = theirs && (!mine || theirs < mine) ? theirs : mine; break;
      }
    }
  }

  uint64_t reads() const { return sum(Counter::reads_independent, Counter::reads_ordered); }
  uint64_t writes() const { return sum(Counter::writes_independent, Counter::writes_ordered); }
  uint64_t metadata() const {
    return (*this)[Counter::opens] + (*this)[Counter::closes] + sum(Counter::seeks, Counter::views) + sum(Counter::resizes, Counter::others);
  }
  uint64_t calls() const { return reads() + writes() + metadata() + (*this)[Counter::syncs]; }
  uint64_t system_ns() const { return (*this)[Counter::system_read_ns] + (*this)[Counter::system_write_ns] + (*this)[Counter::system_sync_ns]; }
  uint64_t total_ns() const { return sum(Counter::read_ns, Counter::sync_ns); }
  bool operator==(const Counters&) const = default;

 private:
  uint64_t sum(Counter first, Counter last) const {
    uint64_t all = 0;
    for (size_t i = size_t(first); i <= size_t(last); ++i) all += values_[i];
    return all;
  }
  std::array<uint64_t, counter_count> values_{};
};

}  // namespace holdfast::profile
