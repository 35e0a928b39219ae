// What the world answers to a question that is no name's: the leader's answer, repeated by the others.
#pragma once
#include <cerrno>
#include <cstring>

#include "intercept/posix/decided.hpp"
#include "redundant/subjects.hpp"

namespace holdfast::intercept::posix {

// `ask` fills the answer, which is copied as it is.
template <class Answer, class Native>
Answer decided(redundant::Replica& replica, uint64_t subject, Native ask) {
  const OurCode ours_now;
  Answer answer{};
  replica.decide(
      subject, ByteSpan(reinterpret_cast<std::byte*>(&answer), sizeof answer),
      [](void* given, ByteSpan into) {
        const Answer made = (*static_cast<Native*>(given))();
        std::memcpy(into.data(), &made, sizeof made);
      },
      &ask);
  return answer;
}

// What a call returns, what it fills, and errno.
template <class Filled>
struct Whole {
  int64_t returned;
  int64_t error;
  Filled filled;
};

template <class Filled, class Native>
Whole<Filled> whole_of(Native native) {
  Whole<Filled> made;
  std::memset(static_cast<void*>(&made), 0, sizeof made);
  made.returned = native(&made.filled);
  made.error = made.returned < 0 ? errno : 0;
  return made;
}

template <class Filled, class Native>
int64_t decide_filled(redundant::Replica& replica, uint64_t subject, Filled* into, Native native) {
  const auto whole = decided<Whole<Filled>>(replica, subject, [=] { return whole_of<Filled>(native); });
  if (into && whole.returned >= 0) *into = whole.filled;
  if (whole.returned < 0) errno = int(whole.error);
  return whole.returned;
}

}  // namespace holdfast::intercept::posix
