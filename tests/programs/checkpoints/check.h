/* For programs of several ranks: what is not as it has to be is said, and remembered. */
#include <mpi.h>
#include <stdio.h>

static int rank, ranks, wrong = 0;

#define CHECK(what)                                                                           \
  do {                                                                                        \
    if (!(what)) fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #what), wrong = 1; \
  } while (0)
#define DONE(call) CHECK((call) == MPI_SUCCESS)
