// --replicas: when a rank is loaded, before the program's first line. A shell between the launcher and an MPI program hands its part on. A
// process takes part when it is linked with an MPI, else when it starts one. A program that `holdfast run` starts itself always does.
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/config.hpp"
#include "base/config_variables.hpp"
#include "frontend/posix/own_code.hpp"
#include "frontend/posix/taking_part.hpp"
#include "intercept/posix/as_one.hpp"
#include "intercept/posix/children.hpp"
#include "redundant/child.hpp"
#include "redundant/orders.hpp"

namespace {

using namespace holdfast;

// `holdfast run` sees to that for what it starts. On other nodes it is somebody else who does: the first of our processes there begins once more.
void have_addresses_as_they_are(char** words, char** environment) {
  constexpr unsigned long as_it_is = 0xffffffff;
  const int now = ::personality(as_it_is);
  if (now < 0 || (now & ADDR_NO_RANDOMIZE) || ::personality(unsigned(now) | ADDR_NO_RANDOMIZE) < 0) return;
  if (!(::personality(as_it_is) & ADDR_NO_RANDOMIZE)) return;
  char program[PATH_MAX];
  const ssize_t bytes = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", program, sizeof program - 1);
  if (bytes <= 0) return;
  program[bytes] = 0;
  syscall(SYS_execve, program, words, environment);
}

__attribute__((constructor(103))) void replica_at_load(int, char** words, char** environment) {
  const bool has_orders = !environment_variable(redundant::orders_variable).empty();
  if (!has_orders && environment_variable(redundant::child_variable).empty()) return;
  {
    const frontend::posix::OurCode ours_now;
    frontend::posix::refuse_to_start_ranks(words);
  }
  const bool is_spawned = frontend::posix::is_spawned();
  if (is_spawned && has_orders) rename_environment_variable(redundant::orders_variable, redundant::child_variable);
  const bool is_mpi = dlsym(RTLD_NEXT, "PMPI_Init") != nullptr;
  if (!has_orders) {
    const frontend::posix::OurCode ours_now;
    frontend::posix::remember_of_whom();
    if (is_mpi && !is_spawned) frontend::posix::refuse_to_be_another_rank();
  }
  if (!has_orders || is_spawned) return intercept::posix::begins_as_child();
  have_addresses_as_they_are(words, environment);
  if (!is_mpi && environment_variable("HOLDFAST_RANK").empty()) return;
  const frontend::posix::OurCode ours_now;
  pthread_atfork([] { intercept::posix::refuse_a_process_while_behind(nullptr); }, nullptr, [] { intercept::posix::begins_as_child(); });
  frontend::posix::take_part();
}

}  // namespace
