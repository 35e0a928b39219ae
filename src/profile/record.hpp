// Counting one call: what every profiled call of the program goes through.
#pragma once
#include <algorithm>
#include <cstdint>

#include "profile/piece.hpp"

namespace holdfast::profile {

inline constexpr uint64_t unknown_offset = UINT64_MAX;

struct CountedCall {
  bool write = false;
  Counter kind = Counter::reads_independent;
  Counter manner = Counter::reads_independent;  // reads_nonblocking ...; the same as `kind` where there is nothing to add
  uint64_t offset = unknown_offset;
  uint64_t bytes = 0;
  bool native = false;  // the program's call is the system's
};

// A number that no other thread that shares the piece has: children of a fork do. 0: not asked for yet.
inline thread_local uint32_t thread_number __attribute__((tls_model("initial-exec"))) = 0;
uint32_t ask_thread_number();

namespace detail {

// A thread's way to a record's counters.
class Tally {
 public:
  // With `claims`, a record that has no owner yet becomes this thread's.
  Tally(Record& record, bool claims) : alone_(owns(record, claims)), values_(alone_ ? record.own : record.others) {}

  void add(Counter counter, uint64_t by = 1) { add(values_[size_t(counter)], by); }
  void add(Value& value, uint64_t by = 1) {
    if (alone_) value.store(value.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
    else value.fetch_add(by, std::memory_order_relaxed);
  }
  void raise(Counter counter, uint64_t to) {
    Value& value = values_[size_t(counter)];
    if (value.load(std::memory_order_relaxed) < to) value.store(to, std::memory_order_relaxed);  // a race loses one candidate
  }
  void set(Counter counter, uint64_t to) { values_[size_t(counter)].store(to, std::memory_order_relaxed); }
  // The time line is of all threads and files: the owner of a record goes to it once a step.
  void add_to_time_line(Record& r, uint32_t step, bool write, uint64_t bytes) {
    constexpr auto relaxed = std::memory_order_relaxed;
    if (!alone_) return add_to_step(live::times[step], write, bytes);
    const uint32_t before = r.step.load(relaxed);
    if (before != step) [[unlikely]] {
      add_to_step(live::times[before], false, r.in_step.read.exchange(0, relaxed));
      add_to_step(live::times[before], true, r.in_step.written.exchange(0, relaxed));
      r.step.store(step, relaxed);
    }
    add(write ? r.in_step.written : r.in_step.read, bytes);
  }
  void set_first(Counter counter, uint64_t to) {
    Value& value = values_[size_t(counter)];
    if (value.load(std::memory_order_relaxed) == 0) value.store(to, std::memory_order_relaxed);
  }

 private:
  static void add_to_step(TimeStep& step, bool write, uint64_t bytes) {
    if (bytes) (write ? step.written : step.read).fetch_add(bytes, std::memory_order_relaxed);
  }
  static bool owns(Record& record, bool claims) {
    const uint32_t me = thread_number ? thread_number : ask_thread_number();
    uint32_t owner = record.owner.load(std::memory_order_relaxed);
    if (owner == me) [[likely]]
      return true;
    return owner == 0 && claims && record.owner.compare_exchange_strong(owner, me, std::memory_order_relaxed);
  }

  const bool alone_;
  std::array<Value, counter_count>& values_;
};

inline void count_common(Tally& tally, std::array<Common, common_values>& kept, uint64_t value) {
  Common* rarest = &kept[0];
  uint64_t least = UINT64_MAX;
  for (Common& one : kept) {
    const uint64_t count = one.count.load(std::memory_order_relaxed);
    if (count && one.value.load(std::memory_order_relaxed) == value) return tally.add(one.count);
    if (count < least) least = count, rarest = &one;
  }
  rarest->value.store(value, std::memory_order_relaxed);
  rarest->count.store(least + 1, std::memory_order_relaxed);
}

// Where the access lies beside the one before of the same direction.
template <bool write>
void count_place(Tally& tally, Record& r, uint64_t offset, uint64_t bytes) {
  Value& next = write ? r.next_write : r.next_read;
  Value& from = write ? r.from_write : r.from_read;
  const uint64_t expected = next.load(std::memory_order_relaxed);
  const uint64_t before = from.load(std::memory_order_relaxed);
  next.store(offset + bytes, std::memory_order_relaxed);
  from.store(offset, std::memory_order_relaxed);
  if (offset == expected) {
    tally.add(write ? Counter::writes_consecutive : Counter::reads_consecutive, offset != 0);
  } else {
    // Reckoned, not branched on: at random places half the guesses would be wrong.
    constexpr Counter forward = write ? Counter::writes_forward : Counter::reads_forward;
    tally.add(Counter(size_t(forward) + size_t(offset < expected)));
    if (expected != 0 || before != 0) count_common(tally, write ? r.write_strides : r.read_strides, offset - before);
  }
  tally.raise(write ? Counter::end_of_writes : Counter::end_of_reads, offset + bytes);
  const uint64_t alignment = r.alignment.load(std::memory_order_relaxed);
  // A division costs more than all the rest: nearly all alignments are powers of two.
  const bool aligned = (alignment & (alignment - 1)) == 0 ? (offset & (alignment - 1)) == 0 : offset % alignment == 0;
  tally.add(write ? Counter::writes_misaligned : Counter::reads_misaligned, alignment != 0 && !aligned);
}
static_assert(size_t(Counter::writes_backward) == size_t(Counter::writes_forward) + 1);
static_assert(size_t(Counter::reads_backward) == size_t(Counter::reads_forward) + 1);

template <bool write>
void count_system(Tally& tally, uint64_t bytes, uint64_t taken) {
  tally.add(write ? Counter::system_writes : Counter::system_reads);
  tally.add(write ? Counter::system_write_bytes : Counter::system_read_bytes, bytes);
  tally.add(write ? Counter::system_write_ns : Counter::system_read_ns, taken);
}

template <bool write>
void count_access(Record& r, const CountedCall& a, uint64_t begin, uint64_t end) {
  Tally tally(r, true);
  const uint64_t taken = end - begin;
  tally.add(a.kind);
  if (a.manner != a.kind) tally.add(a.manner);
  tally.add(write ? Counter::bytes_written : Counter::bytes_read, a.bytes);
  tally.add(write ? Counter::write_ns : Counter::read_ns, taken);
  if (a.native) count_system<write>(tally, a.bytes, taken);
  tally.add(Counter(size_t(write ? Counter::write_sizes_0 : Counter::read_sizes_0) + size_bucket(a.bytes)));
  count_common(tally, write ? r.write_sizes : r.read_sizes, a.bytes);
  tally.raise(write ? Counter::slowest_write_ns : Counter::slowest_read_ns, taken);
  if (a.offset != unknown_offset) count_place<write>(tally, r, a.offset, a.bytes);
  const uint64_t lately = uint64_t(write ? Lately::write : Lately::read);
  const uint64_t before = r.lately.load(std::memory_order_relaxed);
  if (before != lately) {
    r.lately.store(lately, std::memory_order_relaxed);
    if (before) tally.add(Counter::turns);
  }
  const uint64_t at = end - live::start_ticks;
  tally.set_first(write ? Counter::first_write : Counter::first_read, begin - live::start_ticks + 1);
  tally.set(write ? Counter::last_write : Counter::last_read, at);
  const uint64_t ns = uint64_t((unsigned __int128)at * live::ns_per_tick_shifted >> 32);
  tally.add_to_time_line(r, time_step(ns), write, a.bytes);
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
inline void count(Record& record, const CountedCall& access, uint64_t begin, uint64_t end) {
  if (access.write) detail::count_access<true>(record, access, begin, end);
  else detail::count_access<false>(record, access, begin, end);
  if (live::trace) [[unlikely]]
    detail::trace(record, access.kind, access.offset, access.bytes, begin, end);
}

// Where the time of a call that moves no data goes; of those without a total of their own also by call.
constexpr Counter time_of(Counter kind) {
  switch (kind) {
    case Counter::syncs: return Counter::sync_ns;
    case Counter::opens: return Counter::open_ns;
    case Counter::closes: return Counter::close_ns;
    default: return Counter::metadata_ns;
  }
}
constexpr Counter part_of_metadata(Counter kind) {
  switch (kind) {
    case Counter::seeks: return Counter::seek_ns;
    case Counter::stats: return Counter::stat_ns;
    case Counter::views: return Counter::view_ns;
    case Counter::resizes: return Counter::resize_ns;
    case Counter::renames: return Counter::rename_ns;
    case Counter::unlinks: return Counter::unlink_ns;
    case Counter::mmaps: return Counter::mmap_ns;
    default: return Counter::other_ns;
  }
}

// Any other call; `kind` is one of opens ... others. `native`: the program's call is the system's.
inline void count(Record& record, Counter kind, uint64_t begin, uint64_t end, bool native = false) {
  detail::Tally tally(record, false);
  tally.add(kind);
  const Counter time = time_of(kind);
  tally.add(time, end - begin);
  if (time == Counter::metadata_ns) tally.add(part_of_metadata(kind), end - begin);
  if (native) tally.add(kind == Counter::syncs ? Counter::system_syncs : Counter::system_others);
  if (native && kind == Counter::syncs) tally.add(Counter::system_sync_ns, end - begin);
  const uint64_t at = end - live::start_ticks;
  if (kind == Counter::opens) tally.set_first(Counter::first_open, begin - live::start_ticks + 1);
  if (kind == Counter::closes) tally.set(Counter::last_close, at);
  if (live::trace) [[unlikely]]
    detail::trace(record, kind, unknown_offset, 0, begin, end);
  if (kind == Counter::opens || kind == Counter::closes) read_both_clocks();
}

// The record that a meter belongs to; null for one that is none of this process's records'.
inline Record* record_of(const Meter& meter) {
  const auto offset = reinterpret_cast<uintptr_t>(&meter) - reinterpret_cast<uintptr_t>(live::records);
  return live::records && offset < uintptr_t(record_slots) * record_bytes ? live::records + offset / record_bytes : nullptr;
}

inline void count_failure(Record& record) { detail::Tally(record, false).add(Counter::failures); }
// The time of a call whose access has been counted already.
inline void add_time(Record& record, Counter time, uint64_t ticks) { detail::Tally(record, false).add(time, ticks); }

// What has been counted so far, as merge() joins processes' values.
inline uint64_t counted(const Record& record, Counter counter) {
  const uint64_t own = record.own[size_t(counter)].load(std::memory_order_relaxed),
                 others = record.others[size_t(counter)].load(std::memory_order_relaxed);
  switch (counter_infos[size_t(counter)].how) {
    case Reduce::sum: return own + others;
    case Reduce::most: return std::max(own, others);
    case Reduce::least: return own && (!others || own < others) ? own : others;
  }
  return 0;
}

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
// At a close: what served the shared pointer, where it was used since the close before.
void describe_pointer(Record& record, std::string_view algorithm);

}  // namespace holdfast::profile
