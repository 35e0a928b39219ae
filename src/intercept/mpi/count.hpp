// The time of MPI's calls that are not about files, where the profile asks for it: --profile-mpi. Only the library with all calls has it.
#pragma once
#include "intercept/mpi/observe.hpp"
#include "profile/mpi_calls.hpp"

namespace holdfast::intercept {

// Of this thread: it is in a call that is counted already. MPI's functions call each other.
extern __thread bool counting __attribute__((tls_model("initial-exec")));

inline bool counts() { return profile::live::mpi_calls.load(std::memory_order_acquire) && !counting && !observing; }

class CountedCall {
 public:
  explicit CountedCall(profile::MpiCalls kind) : kind_(kind), begin_(profile::ticks()) { counting = true; }
  ~CountedCall() {
    counting = false;
    profile::count(kind_, begin_, profile::ticks());
  }
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;

 private:
  const profile::MpiCalls kind_;
  const uint64_t begin_;
};

}  // namespace holdfast::intercept
