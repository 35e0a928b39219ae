// Whether this thread is in a call of MPI's that the program has made. What the C library is asked from there on is MPI's own matter.
#pragma once

namespace holdfast {

inline __thread int in_mpi_calls __attribute__((tls_model("initial-exec"))) = 0;

class InMpi {
 public:
  InMpi() { ++in_mpi_calls; }
  ~InMpi() { --in_mpi_calls; }
  InMpi(const InMpi&) = delete;
  InMpi& operator=(const InMpi&) = delete;
};

}  // namespace holdfast
