/* The time of one write through the shared file pointer by a rank on another node than rank 0's, and what a question and an answer over
   the same network take (--mode rtt, by plain TCP). --mode claim: one rank at a time; crowd: all of them at once. While others measure,
   ranks sleep: none may spin beside them. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "program.h"

static int rank, ranks;

static void quiet_barrier(void) {
  MPI_Request request;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done) usleep(2000);
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *times, long count) {
  qsort(times, (size_t)count, sizeof *times, by_size);
  return times[count / 2];
}

/* This node's address for the others. */
static struct sockaddr_in own_address(void) {
  struct ifaddrs *all;
  struct sockaddr_in found = {0};
  if (getifaddrs(&all) != 0) fail("getifaddrs");
  for (struct ifaddrs *one = all; one; one = one->ifa_next)
    if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET && !(one->ifa_flags & IFF_LOOPBACK)) memcpy(&found, one->ifa_addr, sizeof found);
  freeifaddrs(all);
  return found;
}

static void exactly(ssize_t got, ssize_t wanted) {
  if (got != wanted) fail("the connection broke");
}

static double ask_and_hear(const struct sockaddr_in *address, double *times, long each) {
  char byte[24] = "";
  const int yes = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, (const struct sockaddr *)address, sizeof *address) != 0) fail("connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  for (long i = 0; i < each; ++i) {
    const double start = now_seconds();
    exactly(send(fd, byte, sizeof byte, 0), sizeof byte);
    exactly(recv(fd, byte, sizeof byte, MSG_WAITALL), sizeof byte);
    times[i] = now_seconds() - start;
  }
  close(fd);
  return median(times, each);
}

static void answer(int listener, long each) {
  char byte[24];
  const int yes = 1, fd = accept(listener, NULL, NULL);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  for (long i = 0; i < each; ++i) {
    exactly(recv(fd, byte, sizeof byte, MSG_WAITALL), sizeof byte);
    exactly(send(fd, byte, sizeof byte, 0), sizeof byte);
  }
  close(fd);
}

static double round_trips(double *times, long each) {
  struct sockaddr_in address = own_address();
  socklen_t bytes = sizeof address;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  double mine = 0;
  if (rank == 0 && (bind(listener, (struct sockaddr *)&address, bytes) != 0 || listen(listener, ranks) != 0)) fail("listen");
  if (rank == 0) getsockname(listener, (struct sockaddr *)&address, &bytes);
  MPI_Bcast(&address, sizeof address, MPI_BYTE, 0, MPI_COMM_WORLD);
  for (int turn = 1; turn < ranks; ++turn) {
    quiet_barrier();
    if (rank == 0) answer(listener, each);
    if (rank == turn) mine = ask_and_hear(&address, times, each);
    quiet_barrier();
  }
  close(listener);
  return mine;
}

static double writes(MPI_File file, double *times, long each) {
  int64_t record = rank;
  MPI_Status status;
  for (long i = 0; i < each; ++i) {
    const double start = now_seconds();
    must(MPI_File_write_shared(file, &record, 1, MPI_INT64_T, &status), "MPI_File_write_shared");
    times[i] = now_seconds() - start;
    must_have_moved(&status, MPI_INT64_T, 1, "claim");
  }
  return median(times, each);
}

static double claims(const char *path, int at_once, double *times, long each) {
  MPI_File file;
  MPI_Offset at = 0;
  double mine = 0;
  must(MPI_File_open(MPI_COMM_WORLD, (char *)path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file), "MPI_File_open");
  for (int turn = 1; turn < (at_once ? 2 : ranks); ++turn) {
    quiet_barrier();
    if (at_once ? rank != 0 : rank == turn) mine = writes(file, times, each);
    quiet_barrier();
  }
  must(MPI_File_get_position_shared(file, &at), "MPI_File_get_position_shared");
  if (at != each * (ranks - 1) * 8) fail("a claim was lost or made twice");
  must(MPI_File_close(&file), "MPI_File_close");
  return mine;
}

int main(int argc, char **argv) {
  const char *mode = "claim", *path = NULL;
  long each = 200;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--mode") == 0) mode = argv[i + 1];
    else if (strcmp(argv[i], "--path") == 0) path = argv[i + 1];
    else if (strcmp(argv[i], "--each") == 0) each = atol(argv[i + 1]);
    else fail("unknown option");
  }
  if (!path || each < 1 || ranks < 2) fail("usage: nodes_bench --path FILE [--mode rtt|claim|crowd] [--each N], on 2 ranks or more");
  double *times = malloc(sizeof(double) * (size_t)each), all = 0, cpu = cpu_seconds();
  struct outcome o = {"nodes_bench", mode, 0, 0, 0, 0, 0, 0};
  const double mine = strcmp(mode, "rtt") == 0 ? round_trips(times, each) : claims(path, strcmp(mode, "crowd") == 0, times, each);
  MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  o.seconds = all / (ranks - 1); /* the median of a rank, on average over the ranks */
  o.cpu_seconds = cpu_seconds() - cpu;
  report(&o);
  MPI_Finalize();
  return 0;
}
