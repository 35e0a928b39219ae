// The door by which threads begin. One that MPI's own library starts is MPI's, and so are those that it starts in turn: in a redundant job what is asked there
// is each process's own, whoever's code asks. A tool that looks at the time in MPI's calls comes there as well, and MPI says how often. Files are written
// once there as elsewhere. The program's own have numbers, by which their questions about the time are counted. One load where the process is no replica.
#include <pthread.h>

#include <cerrno>
#include <memory>
#include <new>

#include "base/quiet_thread.hpp"
#include "frontend/posix/callers.hpp"
#include "intercept/posix/real.hpp"
#include "redundant/twins/program_thread.hpp"
#include "redundant/twins/replica.hpp"

namespace {

using holdfast::intercept::posix::OurCode;
using holdfast::intercept::posix::real;
using holdfast::redundant::Replica;

struct Beginning {
  void* (*run)(void*);
  void* given;
  uint32_t number;  // of the program's threads
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

// However it ends: also by pthread_exit, or cancelled. Not in a child of fork, which is no replica.
class Numbered {
 public:
  explicit Numbered(uint32_t number) : number_(number) {
    const OurCode ours_now;
    holdfast::redundant::this_program_thread.number = number;
    if (Replica* const replica = Replica::now()) replica->thread_begins(number);
  }
  ~Numbered() {
    const OurCode ours_now;
    if (Replica* const replica = Replica::now()) replica->thread_ends(number_);
  }
  Numbered(const Numbered&) = delete;
  Numbered& operator=(const Numbered&) = delete;

 private:
  const uint32_t number_;
};

void* run_for_program(void* handed) {
  const Beginning beginning = taken(handed);
  const Numbered now(beginning.number);
  return beginning.run(beginning.given);
}

// What our own code starts serves this process, or stands for a thread of the program's. For std::thread the C++ library calls.
enum class Whose : uint8_t { ours, mpis, programs };
Whose whose_begins(const void* caller) {
  if (!Replica::now()) [[likely]]
    return Whose::ours;
  const void* const its = holdfast::frontend::posix::beyond_cxx_library(caller);
  if (holdfast::frontend::posix::is_of_mpi(its)) return Whose::mpis;
  if (!holdfast::frontend::posix::is_of_the_program(its)) return Whose::ours;
  if (this_one_is_of_mpi) return Whose::mpis;
  return holdfast::in_quiet_thread || holdfast::frontend::posix::inside > 0 ? Whose::ours : Whose::programs;
}

int begin(pthread_t* thread, const pthread_attr_t* attributes, void* (*first)(void*), Beginning beginning) {
  std::unique_ptr<Beginning> handed;
  {
    const OurCode ours_now;
    handed.reset(new (std::nothrow) Beginning(beginning));
  }
  if (!handed) return EAGAIN;
  const int error = real().pthread_create(thread, attributes, first, handed.get());
  const OurCode ours_now;
  if (error == 0) (void)handed.release();
  handed.reset();
  return error;
}

// One that cannot be started has no number.
int begin_of_program(pthread_t* thread, const pthread_attr_t* attributes, Beginning beginning) {
  beginning.number = holdfast::redundant::next_thread_number();
  holdfast::redundant::program_has_started_threads = true;
  const int error = begin(thread, attributes, run_for_program, beginning);
  if (error == 0) ++holdfast::redundant::this_program_thread.started;
  return error;
}

}  // namespace

HF_DOOR int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* given) noexcept {
  switch (whose_begins(HF_CALLER)) {
    case Whose::mpis: return begin(thread, attributes, run_for_mpi, {run, given, 0});
    case Whose::programs: return begin_of_program(thread, attributes, {run, given, 0});
    case Whose::ours: break;
  }
  return real().pthread_create(thread, attributes, run, given);
}
