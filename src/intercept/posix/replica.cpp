// --replicas: when a rank is loaded, before the program's first line. A shell between the launcher and an MPI program hands its part on: a
// process takes part when it is linked with an MPI, else when it starts one. A program that `holdfast run` starts itself always does.
#include <dlfcn.h>
#include <pthread.h>

#include "base/config.hpp"
#include "frontend/posix/own_code.hpp"
#include "frontend/posix/taking_part.hpp"
#include "intercept/posix/as_one.hpp"
#include "redundant/orders.hpp"

namespace {

using namespace holdfast;

__attribute__((constructor(103))) void at_load() {
  if (environment_variable(redundant::orders_variable).empty()) return;
  const bool is_mpi = dlsym(RTLD_NEXT, "PMPI_Init") != nullptr;
  if (!is_mpi && environment_variable("HOLDFAST_RANK").empty()) return;
  const frontend::posix::OurCode ours_now;
  pthread_atfork([] { intercept::posix::refuse_a_process_while_behind(nullptr); }, nullptr, nullptr);
  frontend::posix::take_part();
}

}  // namespace
