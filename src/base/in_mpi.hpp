// Whether this thread is in a call of MPI's that the program has made. What the C library is asked from there on is MPI's own matter.
#pragma once
#include <atomic>
#include <cstdint>

namespace holdfast {

inline __thread int in_mpi_calls __attribute__((tls_model("initial-exec"))) = 0;

// The program's call that a thread is in, for other threads to look at.
struct CallOfMpi {
  std::atomic<const char*> name{nullptr};  // null: in none that waits for ranks of the job alone
  std::atomic<uint64_t> begun{0};          // how many by now
};
inline constinit thread_local CallOfMpi call_of_mpi __attribute__((tls_model("initial-exec")));

// This process has called for ranks of another job, or been called: what it waits for may come from there ever after.
inline constinit std::atomic<bool> others_may_come{false};

// The program uses sessions of MPI: what threads may call is then for each of them to say.
inline constinit std::atomic<bool> sessions_have_begun{false};
// No two threads call MPI at once. That is known once MPI has begun, and holds until a session does.
inline constinit std::atomic<bool> one_thread_at_a_time{false};

class InMpi {
 public:
  explicit InMpi(const char* name) {
    if (++in_mpi_calls > 1) return;
    CallOfMpi& call = call_of_mpi;
    call.begun.store(call.begun.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    call.name.store(name, std::memory_order_relaxed);
  }
  ~InMpi() {
    if (--in_mpi_calls == 0) call_of_mpi.name.store(nullptr, std::memory_order_relaxed);
  }
  // In a call by which ranks of other jobs come.
  static const char* others_come() {
    others_may_come.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  InMpi(const InMpi&) = delete;
  InMpi& operator=(const InMpi&) = delete;
};

}  // namespace holdfast
