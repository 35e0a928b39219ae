// As starts_for_mpi.c, in C++: the C++ library calls pthread_create. STARTS names the function: it is in a library of MPI's, or in one of the program's.
#include <pthread.h>

#include <system_error>
#include <thread>

extern "C" int STARTS(pthread_t *thread, void *(*run)(void *), void *given) {
  try {
    auto *const one = new std::thread([=] { (void)run(given); });  // the caller joins it by its handle, so it is never destroyed
    *thread = one->native_handle();
    return 0;
  } catch (const std::system_error &error) {
    return error.code().value();
  }
}
