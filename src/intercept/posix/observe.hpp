// What the doors do where the job is profiled: the call between two looks at the clock, and a line in the file's record. A call that comes while
// the thread carries a meter is none of the program's. It is of a library in a counted call (MPI-IO, a stream), and so the meter's.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "base/meter.hpp"
#include "frontend/posix/description.hpp"
#include "intercept/posix/real.hpp"
#include "profile/numbers.hpp"
#include "profile/record.hpp"

namespace holdfast::intercept::posix {

using profile::Counter;

// This process counts its plain calls. Not before the library's constructors have run: calls from before main may not allocate.
extern std::atomic<bool> observing;
inline bool observes() { return observing.load(std::memory_order_relaxed) && inside == 0; }

inline constexpr int64_t at_position = -1, no_place = -2;

// A call on a descriptor. What moves bytes is a reads_independent or writes_independent, with the place where it begins.
struct Call {
  Counter kind;
  int64_t place = no_place;
};
inline constexpr Call reads(int64_t place = at_position) { return {Counter::reads_independent, place}; }
inline constexpr Call writes(int64_t place = at_position) { return {Counter::writes_independent, place}; }

class Watch {
 public:
  // With `closes` the number leads nowhere from here on: the next one who gets it may be quicker than we are.
  explicit Watch(int fd, bool closes = false);
  // Negative: a failure. Leaves errno as it is.
  void ends(Call call, int64_t answer);

 private:
  profile::OpenedFile* file_ = nullptr;  // null: not to be counted
  profile::Record* record_ = nullptr;
  Meter* outer_ = nullptr;  // counted there, not in a record
  int fd_;
  bool native_ = false;
  uint64_t begin_ = 0;
};

// Apart, so that what is not profiled stays as short as it was.
template <class Serve>
[[gnu::noinline]] auto watched_call(int fd, Call call, Serve serve) -> decltype(serve()) {
  Watch watch(fd);
  const auto answer = serve();
  watch.ends(call, int64_t(answer));
  return answer;
}
template <class Serve>
auto observed(int fd, Call call, Serve serve) -> decltype(serve()) {
  return observes() ? watched_call(fd, call, serve) : serve();
}

template <class Serve>
int observed_close(int fd, Serve serve) {
  if (!observes()) [[likely]]
    return serve();
  Watch watch(fd, true);
  const int answer = serve();
  watch.ends({Counter::closes}, answer);
  return answer;
}
// Many at once, before they are closed.
void observe_closing(unsigned first, unsigned last);
// The C library closes the stream's descriptor, or opens another file on its number, by calls that pass no door.
inline void observe_stream_goes(FILE* stream) {
  if (!observes() || !stream) return;
  if (const int fd = real().fileno(stream); fd >= 0) profile::numbers::end(fd);
}
// `to` has become a duplicate of `from`.
void observe_duplicate(int from, int to);
// The file was opened to append, or is from here on (F_SETFL).
void observe_flags(int fd, int flags);

// An open by name.
class OpenWatch {
 public:
  OpenWatch(int directory, const char* path, int flags);
  void ends(int fd);

 private:
  void failed();
  const int directory_, flags_;
  const char* const path_;
  const uint64_t begin_;
};
template <class Serve>
int observed_open(int directory, const char* path, int flags, Serve serve) {
  if (!observes() || !path) [[likely]]
    return serve();
  OpenWatch watch(directory, path, flags);
  const int fd = serve();
  watch.ends(fd);
  return fd;
}
// In our code: a file is being opened for the program that is served by us. What its targets are asked from here on counts as the file's.
class OpeningServed {
 public:
  explicit OpeningServed(const std::string& path)
      : record_(record_of(path)), opening_(record_), scope_(current_meter || !record_ ? current_meter : &record_->meter) {}
  void is(std::string_view scheme, uint64_t alignment) {
    if (record_) profile::describe(*record_, scheme, alignment);
  }

 private:
  static profile::Record* record_of(const std::string& path);
  profile::Record* const record_;
  profile::OpeningScope opening_;
  MeterScope scope_;
};
// A descriptor of a file that is served by us has come from another image of this process.
void observe_adopted(int fd, frontend::posix::Description& description);

// A call that names a file. Those that only look (stats, others) are counted where this process has used the file otherwise, or a
// program's search through directories would fill the records.
class NameWatch {
 public:
  NameWatch(Counter kind, int directory, const char* path);
  void ends(int answer);

 private:
  const Counter kind_;
  profile::Record* record_ = nullptr;
  Meter* const outer_;
  uint64_t begin_ = 0;
};
template <class Serve>
int observed_name(Counter kind, int directory, const char* path, Serve serve) {
  if (!observes()) [[likely]]
    return serve();
  NameWatch watch(kind, directory, path);
  const int answer = serve();
  watch.ends(answer);
  return answer;
}

}  // namespace holdfast::intercept::posix
