// Who is calling? Our own code, and an MPI that opens a file of its own, come through the C library's doors too.
#pragma once
#include <pthread.h>

#include <cstdint>

namespace holdfast::frontend::posix {

// This thread is in our own code: what it calls is not the program's call and passes.
extern __thread int inside __attribute__((tls_model("initial-exec")));
// Signals that came to it there and are put off until it is out again. A handler may call what our code is in the middle of.
extern __thread volatile uint64_t signals_put_off __attribute__((tls_model("initial-exec")));
void let_signals_come();
// Nor is a thread cancelled there: it would leave locks behind.
class OurCode {
 public:
  OurCode() {
    if (inside++ == 0) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
  }
  ~OurCode() {
    if (--inside > 0) return;
    if (signals_put_off) [[unlikely]]
      let_signals_come();
    pthread_setcancelstate(cancel_state_, nullptr);
  }
  OurCode(const OurCode&) = delete;
  OurCode& operator=(const OurCode&) = delete;

 private:
  int cancel_state_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace holdfast::frontend::posix
