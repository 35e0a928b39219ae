// The door by which threads begin. One that MPI's own library starts is MPI's, and so are those that it starts in turn: in a redundant job what is asked there
// is each process's own, whoever's code asks. A tool that looks at the time in MPI's calls comes there as well, and MPI says how often. Files are written
// once there as elsewhere. One load where the process is no replica.
#include <pthread.h>

#include <cerrno>
#include <memory>
#include <new>

#include "base/quiet_thread.hpp"
#include "frontend/posix/callers.hpp"
#include "intercept/posix/real.hpp"
#include "redundant/twins/replica.hpp"

namespace {

using holdfast::intercept::posix::OurCode;
using holdfast::intercept::posix::real;

struct Beginning {
  void* (*run)(void*);
  void* given;
};

__thread bool this_one_is_of_mpi __attribute__((tls_model("initial-exec"))) = false;

Beginning taken(void* handed) {
  const OurCode ours_now;
  return *std::unique_ptr<Beginning>(static_cast<Beginning*>(handed));
}

void* run_for_mpi(void* handed) {
  const Beginning beginning = taken(handed);
  this_one_is_of_mpi = true;
  holdfast::in_quiet_thread = true;
  return beginning.run(beginning.given);
}

// What our own code starts serves this process, or stands for a thread of the program's. For std::thread the C++ library calls.
bool begins_for_mpi(const void* caller) {
  if (!holdfast::redundant::Replica::now()) [[likely]]
    return false;
  const void* const its = holdfast::frontend::posix::beyond_cxx_library(caller);
  return holdfast::frontend::posix::is_of_mpi(its) || (this_one_is_of_mpi && holdfast::frontend::posix::is_of_the_program(its));
}

int begin_for_mpi(pthread_t* thread, const pthread_attr_t* attributes, Beginning beginning) {
  std::unique_ptr<Beginning> handed;
  {
    const OurCode ours_now;
    handed.reset(new (std::nothrow) Beginning(beginning));
  }
  if (!handed) return EAGAIN;
  const int error = real().pthread_create(thread, attributes, run_for_mpi, handed.get());
  const OurCode ours_now;
  if (error == 0) (void)handed.release();
  handed.reset();
  return error;
}

}  // namespace

HF_DOOR int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* given) noexcept {
  if (!begins_for_mpi(HF_CALLER)) [[likely]]
    return real().pthread_create(thread, attributes, run, given);
  return begin_for_mpi(thread, attributes, {run, given});
}
