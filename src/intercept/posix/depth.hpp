// Who is calling? Our own code, and an MPI that opens a file of its own, come through the C library's doors too.
#pragma once
#include <csignal>

namespace holdfast::intercept::posix {

// This thread is in our own code: what it calls is not the program's call and passes.
extern __thread int inside __attribute__((tls_model("initial-exec")));
// A signal that would have ended the process in the middle of it comes afterwards.
extern volatile sig_atomic_t signal_that_waits;
void signal_after_call();
class OurCode {
 public:
  OurCode() { ++inside; }
  ~OurCode() {
    if (--inside == 0 && signal_that_waits) [[unlikely]] signal_after_call();
  }
  OurCode(const OurCode&) = delete;
  OurCode& operator=(const OurCode&) = delete;
};

}  // namespace holdfast::intercept::posix
