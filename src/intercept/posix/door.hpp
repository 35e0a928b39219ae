// What every door that takes a descriptor is made of: the file's own call where the number is a protected file's, else the C library's.
// Whoever wants to see all calls of protected files hooks in here.
#pragma once
#include <cerrno>
#include <type_traits>

#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/observe.hpp"
#include "intercept/posix/own_failures.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"

namespace holdfast::intercept::posix {

// -1 and errno for what failed; one line on standard error where there is a sentence.
inline int fail(Description& file, const Status& status) {
  if (!status.sentence().empty()) complain(file.path(), status.sentence());
  return errno = status.to_errno(), -1;
}
inline int answer(Description& file, const Status& status) { return status.ok() ? 0 : fail(file, status); }
template <class Value>
int64_t answer(Description& file, const Result<Value>& result) {
  return result ? int64_t(*result) : fail(file, result.status());
}

template <class Result, class Ours>
Result ask(Description& file, Ours ours) {
  const OurCode ours_now;
  const LayerTime measured;
  const int before = errno;
  const auto status = ours(file);
  const auto value = Result(answer(file, status));
  if (file.news_of_others() && !watched_numbers[STDERR_FILENO]) [[unlikely]]  // not into a file of the program's
    complain(file.path(), "another process of this node has it open too, so it goes without buffers from here on");
  if (value >= 0) errno = before;  // a call that succeeds leaves it alone
  return value;
}

// Ours at once where the descriptor is known, else the native call, and after an EBADF of it perhaps ours after all
// (a descriptor that came through exec).
template <class Ours, class Native>
auto either(int fd, Ours ours, Native native) -> decltype(native()) {
  using Answer = decltype(native());
  if (is_watched(fd)) [[unlikely]]
    if (auto description = find_watched(fd)) return ask<Answer>(*description, ours);
  const Answer result = native();
  if (result == Answer(-1) && errno == EBADF) [[unlikely]]
    if (auto description = adopt(fd)) return ask<Answer>(*description, ours);
  return result;
}

// The same, counted where the job is profiled. What fails natively has failed in all replicas.
template <class Ours, class Native>
auto either(int fd, Call call, Ours ours, Native native) -> decltype(native()) {
  const auto as_all = [=] {
    const auto answer = native();
    return answer == decltype(answer)(-1) && may_be_alone(errno) ? decltype(answer)(failure_of_all(fd, int(call.kind), call.place, -1)) : answer;
  };
  if (observes()) [[unlikely]]
    return watched_call(fd, call, [=] { return either(fd, ours, as_all); });
  return either(fd, ours, as_all);
}

// Of a native write: what was cut short was so in all replicas.
inline ssize_t written_by_all(int fd, int64_t place, size_t wanted, ssize_t put) {
  constexpr ssize_t most_of_a_call = 0x7ffff000;  // the kernel takes no more at once
  if (put == ssize_t(wanted) || put < 0 || put == most_of_a_call) [[likely]]
    return put;
  return ssize_t(failure_of_all(fd, int(Counter::writes_independent), place, put));
}

// For calls at which a thread may be cancelled: before ours, never in the middle of it.
template <class Ours, class Native>
auto either_or_end(int fd, Call call, Ours ours, Native native) -> decltype(native()) {
  if (is_watched(fd)) [[unlikely]]
    pthread_testcancel();
  return either(fd, call, ours, native);
}

}  // namespace holdfast::intercept::posix
