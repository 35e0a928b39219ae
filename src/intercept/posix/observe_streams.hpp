// What the doors of streams do where the job is profiled: the call between two looks at the clock, and a line in the file's record
// (Interface::stdio). The system's calls below it count for that record: those of a protected or buffered file, whose streams come back
// through our doors. What the C library itself writes of a plain file's stream, nobody sees.
#pragma once
#include <stdio.h>

#include <array>
#include <atomic>

#include "base/meter.hpp"
#include "intercept/posix/real.hpp"
#include "profile/record.hpp"

namespace holdfast::intercept::posix {

// An open stream of a counted file. Changed by calls of one stream, which the C library puts in order; found without a lock.
struct Stream {
  std::atomic<FILE*> file{nullptr};
  std::atomic<profile::Record*> record{nullptr};  // null: the place is free
  std::atomic<uint64_t> position{0};              // of the next access; profile::unknown_offset where it is not known
  std::atomic<int> fd{-1};                        // of ours, behind a stream of ours
  std::atomic<bool> appends{false};
};

inline constexpr size_t most_streams = 1024;  // a power of two; streams beyond are not counted
extern std::array<Stream, most_streams> watched_streams;
// Set with the first counted stream: until then every door is one load.
extern std::atomic<bool> any_stream;
// In the place of the record of standard input, output or error, until its first use.
inline profile::Record* record_to_come() { return reinterpret_cast<profile::Record*>(uintptr_t{1}); }
Stream* look_at_standard(Stream& stream);

inline size_t place_of(FILE* file) { return (reinterpret_cast<uintptr_t>(file) * 0x9E3779B97F4A7C15ull) >> (64 - 10); }
static_assert(most_streams == 1 << 10);

// `moves`: the call moves bytes. Before the first of these standard output is nobody's file: runtimes set it up and flush it unused.
inline Stream* find_stream(FILE* file, bool moves) {
  for (size_t i = 0, at = place_of(file); i < most_streams; ++i, at = (at + 1) % most_streams) {
    Stream& here = watched_streams[at];
    FILE* const there = here.file.load(std::memory_order_acquire);
    if (there == nullptr) return nullptr;  // places are never emptied again, only given on
    if (there != file) continue;
    profile::Record* const record = here.record.load(std::memory_order_relaxed);
    if (record == record_to_come()) [[unlikely]]
      return moves ? look_at_standard(here) : nullptr;
    return record ? &here : nullptr;
  }
  return nullptr;
}

// The stream of a call that is to be counted. One that comes from below another counted call is the system's, not the program's.
inline Stream* watched(FILE* file, bool moves) {
  if (!any_stream.load(std::memory_order_relaxed)) [[likely]]
    return nullptr;
  if (inside > 0 || current_meter) return nullptr;
  return find_stream(file, moves);
}

class StreamCall {
 public:
  explicit StreamCall(Stream& stream)
      : stream_(stream), record_(*stream.record.load(std::memory_order_relaxed)), below_(&record_.meter), begin_(profile::ticks()) {}
  // `bytes` have been moved from the stream's position on; `failed` where the answer said so.
  void moved(bool write, uint64_t bytes, bool failed);
  void other(profile::Counter kind, bool failed);
  Stream& stream() { return stream_; }

 private:
  Stream& stream_;
  profile::Record& record_;
  const MeterScope below_;
  const uint64_t begin_;
};

// A stream that is being opened, between the two looks at the clock; `record` null: it is not counted.
class StreamOpening {
 public:
  explicit StreamOpening(profile::Record* record)
      : record_(record), opening_(record), below_(record ? &record->meter : current_meter), begin_(record ? profile::ticks() : 0) {}
  // What came of it: null, or the stream, which is counted from here on.
  void opened(FILE* stream, const char* mode);

 private:
  profile::Record* const record_;
  const profile::OpeningScope opening_;
  const MeterScope below_;
  const uint64_t begin_;
};
// Null where the file is not to be counted: it is none of the program's own, or no regular one.
profile::Record* record_of_opening(const char* path, const char* mode);
profile::Record* record_of_opening(int fd);

template <class Open>
FILE* observe_opening(profile::Record* record, const char* mode, Open open) {
  if (!record) [[likely]]
    return open();
  StreamOpening opening(record);
  FILE* const stream = open();
  opening.opened(stream, mode);
  return stream;
}

// The stream is going to be closed: its record, null where it has none. Before the C library gives its memory to another.
profile::Record* take_stream(FILE* file);
// A stream that goes by freopen: what it still holds is written, as the file's that it was.
void observe_leaving(FILE* stream);
// Whose calls those of a stream of ours are while no call of the program is on the way (at exit). Null: nobody's.
Meter* meter_behind(int fd);

}  // namespace holdfast::intercept::posix
