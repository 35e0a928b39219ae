/* Stands for a library of MPI's, by its name (libmpi_...): it starts threads. */
#include <pthread.h>

int starts_for_mpi(pthread_t *thread, void *(*run)(void *), void *given) {
  const int error = pthread_create(thread, NULL, run, given);
  return error;
}
