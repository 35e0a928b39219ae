// All signals held back from this thread for a few lines. Those that are the program's run in its own threads: one that is started meanwhile keeps
// them blocked.
#pragma once
#include <pthread.h>
#include <signal.h>

namespace holdfast {

class WithoutSignals {
 public:
  // A thread that outlives these lines ends its process all the same where it does wrong itself.
  enum class Faults { held_back, let_through };
  explicit WithoutSignals(Faults faults = Faults::held_back) {
    sigset_t all;
    sigfillset(&all);
    if (faults == Faults::let_through)
      for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace holdfast
