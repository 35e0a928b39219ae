// Counting one call: what every profiled call of the program goes through.
#pragma once
#include <algorithm>
#include <cstdint>

#include "profile/piece.hpp"

namespace holdfast::profile {

inline constexpr uint64_t unknown_offset = UINT64_MAX;

struct Access {
  bool write = false;
  Counter kind = Counter::reads_independent;
  Counter manner = Counter::reads_independent;  // reads_nonblocking ...; the same as `kind` where there is nothing to add
  uint64_t offset = unknown_offset;
  uint64_t bytes = 0;
};

namespace detail {

inline void add(Value& value, uint64_t by = 1) { value.fetch_add(by, std::memory_order_relaxed); }
inline void add(Record& record, Counter counter, uint64_t by = 1) { add(record.values[size_t(counter)], by); }
inline void raise(Value& value, uint64_t to) {
  if (value.load(std::memory_order_relaxed) < to) value.store(to, std::memory_order_relaxed);  // a race loses one candidate
}
inline void raise(Record& record, Counter counter, uint64_t to) { raise(record.values[size_t(counter)], to); }
inline void set(Record& record, Counter counter, uint64_t to) { record.values[size_t(counter)].store(to, std::memory_order_relaxed); }

inline void count_common(std::array<Common, common_values>& kept, uint64_t value) {
  Common* rarest = &kept[0];
  uint64_t least = UINT64_MAX;
  for (Common& one : kept) {
    const uint64_t count = one.count.load(std::memory_order_relaxed);
    if (count && one.value.load(std::memory_order_relaxed) == value) return add(one.count);
    if (count < least) least = count, rarest = &one;
  }
  rarest->value.store(value, std::memory_order_relaxed);
  rarest->count.store(least + 1, std::memory_order_relaxed);
}

// Where the access lies beside the one before of the same direction.
template <bool write>
void count_place(Record& r, uint64_t offset, uint64_t bytes) {
  Value& next = write ? r.next_write : r.next_read;
  Value& from = write ? r.from_write : r.from_read;
  const uint64_t expected = next.load(std::memory_order_relaxed);
  const uint64_t before = from.load(std::memory_order_relaxed);
  next.store(offset + bytes, std::memory_order_relaxed);
  from.store(offset, std::memory_order_relaxed);
  if (offset == expected) {
    if (offset != 0) add(r, write ? Counter::writes_consecutive : Counter::reads_consecutive);
  } else {
    add(r, offset > expected ? (write ? Counter::writes_forward : Counter::reads_forward)
                             : (write ? Counter::writes_backward : Counter::reads_backward));
    if (expected != 0 || before != 0) count_common(write ? r.write_strides : r.read_strides, offset - before);
  }
  raise(r, write ? Counter::end_of_writes : Counter::end_of_reads, offset + bytes);
  const uint64_t alignment = r.alignment.load(std::memory_order_relaxed);
  // A division costs more than all the rest: nearly all alignments are powers of two.
  const bool aligned = (alignment & (alignment - 1)) == 0 ? (offset & (alignment - 1)) == 0 : offset % alignment == 0;
  if (alignment != 0 && !aligned) add(r, write ? Counter::writes_misaligned : Counter::reads_misaligned);
}

template <bool write>
void count_access(Record& r, const Access& a, uint64_t begin, uint64_t end) {
  const uint64_t taken = end - begin;
  add(r, a.kind);
  if (a.manner != a.kind) add(r, a.manner);
  add(r, write ? Counter::bytes_written : Counter::bytes_read, a.bytes);
  add(r, write ? Counter::write_ns : Counter::read_ns, taken);
  add(r, Counter(size_t(write ? Counter::write_sizes_0 : Counter::read_sizes_0) + size_bucket(a.bytes)));
  count_common(write ? r.write_sizes : r.read_sizes, a.bytes);
  raise(r, write ? Counter::slowest_write_ns : Counter::slowest_read_ns, taken);
  if (a.offset != unknown_offset) count_place<write>(r, a.offset, a.bytes);
  const uint64_t lately = uint64_t(write ? Lately::write : Lately::read);
  const uint64_t before = r.lately.load(std::memory_order_relaxed);
  if (before != lately) {
    r.lately.store(lately, std::memory_order_relaxed);
    if (before) add(r, Counter::turns);
  }
  const uint64_t at = end - live::start_ticks;
  constexpr Counter first = write ? Counter::first_write : Counter::first_read;
  if (r.values[size_t(first)].load(std::memory_order_relaxed) == 0) set(r, first, begin - live::start_ticks + 1);
  set(r, write ? Counter::last_write : Counter::last_read, at);
  const uint64_t ns = uint64_t((unsigned __int128)at * live::ns_per_tick_shifted >> 32);
  TimeStep& step = live::times[time_step(ns)];
  add(write ? step.written : step.read, a.bytes);
}

inline void trace(const Record& r, Counter kind, uint64_t offset, uint64_t bytes, uint64_t begin, uint64_t end) {
  const uint64_t number = live::header->traced.fetch_add(1, std::memory_order_relaxed);
  Traced& slot = live::trace[number % trace_slots];
  slot.number.store(0, std::memory_order_relaxed);
  slot.begin = begin - live::start_ticks;
  slot.duration = end - begin;
  slot.offset = offset;
  slot.bytes = bytes;
  slot.record = uint32_t(&r - live::records);
  slot.counter = uint16_t(kind);
  slot.number.store(number + 1, std::memory_order_release);
}

}  // namespace detail

// A read or write that took from `begin` to `end` (ticks).
inline void count(Record& record, const Access& access, uint64_t begin, uint64_t end) {
  if (access.write) detail::count_access<true>(record, access, begin, end);
  else detail::count_access<false>(record, access, begin, end);
  if (live::trace) [[unlikely]] detail::trace(record, access.kind, access.offset, access.bytes, begin, end);
}

// Any other call; `kind` is one of opens ... others.
inline void count(Record& record, Counter kind, uint64_t begin, uint64_t end) {
  detail::add(record, kind);
  const Counter time = kind == Counter::syncs    ? Counter::sync_ns
                       : kind == Counter::opens  ? Counter::open_ns
                       : kind == Counter::closes ? Counter::close_ns
                                                 : Counter::metadata_ns;
  detail::add(record, time, end - begin);
  const uint64_t at = end - live::start_ticks;
  if (kind == Counter::opens && record.values[size_t(Counter::first_open)].load(std::memory_order_relaxed) == 0)
    detail::set(record, Counter::first_open, begin - live::start_ticks + 1);
  if (kind == Counter::closes) detail::set(record, Counter::last_close, at);
  if (live::trace) [[unlikely]] detail::trace(record, kind, unknown_offset, 0, begin, end);
  if (kind == Counter::opens || kind == Counter::closes) read_both_clocks();
}

inline void count_failure(Record& record) { detail::add(record, Counter::failures); }

// The file that this thread is opening or closing: whoever knows more about it tells the record. Null: nobody asks.
inline thread_local Record* opening_record __attribute__((tls_model("initial-exec"))) = nullptr;
class OpeningScope {
 public:
  explicit OpeningScope(Record* record) : before_(opening_record) { opening_record = record; }
  ~OpeningScope() { opening_record = before_; }
  OpeningScope(const OpeningScope&) = delete;
  OpeningScope& operator=(const OpeningScope&) = delete;

 private:
  Record* before_;
};

// What the file is.
void describe(Record& record, std::string_view scheme, uint64_t alignment);
void describe_pointer(Record& record, std::string_view algorithm);

}  // namespace holdfast::profile
