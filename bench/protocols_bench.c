/* One rank, one file, calls of several sizes: reads by MPI-IO, writes by plain calls. It knows nothing of replicas.

     protocols_bench --mode read --path FILE --sizes N,N,... [--verify]   a file of 64 MiB, opened to read
     protocols_bench --mode write --path FILE --sizes N,N,... [--rest US] FILE.N is made anew for each size; a rest after each MiB
     protocols_bench --mode clock --count N                               asks for the time N times
     protocols_bench --mode sends --count N                               of two ranks: N times the time, a message to the other one, and one back
     protocols_bench --mode appends --path FILE --count N                 each rank appends N lines of 64 bytes
     protocols_bench --mode calls --path FILE --seconds S                 small writes, one after another: the longest pause between two

   Of each size as many pieces are moved as make 8 MiB (--least N: N bytes), and one at least. The clock runs over these calls and the close. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <unistd.h>

#include "program.h"

enum { period = 16 << 20, most_sizes = 16 };
static uint64_t least_bytes = 8 << 20;
static useconds_t rest_us = 0;

static void fail_with(const char *what) {
  char text[4200];
  snprintf(text, sizeof text, "%s: %s", what, strerror(errno));
  fail(text);
}

static void fill(uint64_t *piece, uint64_t bytes, uint64_t at) {
  for (uint64_t i = 0; i < bytes / 8; ++i) piece[i] = (at / 8 + i) % (period / 8) * 0x9e3779b97f4a7c15u + 1;
}

static void compare(const uint64_t *piece, uint64_t bytes, uint64_t at) {
  for (uint64_t i = 0; i < bytes / 8; ++i)
    if (piece[i] != (at / 8 + i) % (period / 8) * 0x9e3779b97f4a7c15u + 1) fail("wrong data");
}

static uint64_t bytes_of(uint64_t size) { return size < least_bytes ? least_bytes : size; }

static double read_pieces(const char *path, uint64_t size, char *data, int verify) {
  MPI_File file;
  MPI_Status status;
  must(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), "MPI_File_open");
  const double start = now_seconds();
  for (uint64_t at = 0; at < bytes_of(size); at += size) {
    must(MPI_File_read_at(file, (MPI_Offset)at, data, (int)size, MPI_BYTE, &status), "MPI_File_read_at");
    must_have_moved(&status, MPI_BYTE, (int)size, "MPI_File_read_at");
    if (verify) compare((uint64_t *)data, size, at);
  }
  must(MPI_File_close(&file), "MPI_File_close");
  return now_seconds() - start;
}

static double write_pieces(const char *path, uint64_t size, const char *data) {
  char name[4096];
  snprintf(name, sizeof name, "%s.%llu", path, (unsigned long long)size);
  const int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0666);
  if (fd < 0) fail_with(name);
  const double start = now_seconds();
  for (uint64_t at = 0; at < bytes_of(size); at += size) {
    if (write(fd, data + at % period, size) != (ssize_t)size) fail_with("write");
    if (rest_us && (at + size) % (1 << 20) == 0) usleep(rest_us);
  }
  if (close(fd) != 0) fail_with("close");
  return now_seconds() - start;
}

static void move_all(const char *mode, const char *path, char *sizes, int verify) {
  const int reads = !strcmp(mode, "read");
  const uint64_t most = 64 << 20;
  char *data = malloc(most + period);
  if (!data) fail("malloc");
  fill((uint64_t *)data, most + period, 0);
  double seconds[most_sizes], sum = 0;
  uint64_t each[most_sizes], bytes = 0;
  int count = 0;
  for (char *word = strtok(sizes, ","); word && count < most_sizes; word = strtok(0, ","), ++count) {
    each[count] = strtoull(word, 0, 10);
    if (each[count] == 0 || each[count] > most) fail("sizes are at most 64 MiB");
    seconds[count] = reads ? read_pieces(path, each[count], data, verify) : write_pieces(path, each[count], data);
    sum += seconds[count], bytes += bytes_of(each[count]);
  }
  printf(
      "{\"mode\": \"%s\", \"bytes\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"ranks\": 1, \"peak_rss_bytes\": %llu, \"verified\": %s, "
      "\"of\": {",
      mode, (unsigned long long)bytes, sum, cpu_seconds(), (unsigned long long)peak_resident_bytes(), verify ? "true" : "false");
  for (int i = 0; i < count; ++i) printf("%s\"%llu\": %.6f", i ? ", " : "", (unsigned long long)each[i], seconds[i]);
  printf("}}\n");
  free(data);
}

static void ask_the_clock(uint64_t count) {
  const double start = now_seconds();
  for (uint64_t i = 1; i < count; ++i) (void)now_seconds();
  printf("{\"mode\": \"clock\", \"bytes\": 0, \"seconds\": %.9f, \"cpu_seconds\": %.6f, \"ranks\": 1, \"peak_rss_bytes\": 0}\n",
         now_seconds() - start, cpu_seconds());
}

/* Each send follows a clock, as where programs measure what they do. */
static void send_and_ask(uint64_t count) {
  int rank;
  double message = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now_seconds();
  for (uint64_t i = 0; i < count; ++i) {
    if (rank == 0) {
      message = now_seconds();
      MPI_Send(&message, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(&message, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      MPI_Recv(&message, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&message, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    }
  }
  if (rank == 0)
    printf("{\"mode\": \"sends\", \"bytes\": 0, \"seconds\": %.9f, \"cpu_seconds\": %.6f, \"ranks\": 2, \"peak_rss_bytes\": 0}\n",
           now_seconds() - start, cpu_seconds());
}

static void append_lines(const char *path, uint64_t count) {
  int rank, ranks;
  char line[64];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  memset(line, 'a' + rank, sizeof line);
  line[sizeof line - 1] = '\n';
  const int fd = open(path, O_CREAT | O_APPEND | O_WRONLY, 0666);
  if (fd < 0) fail_with(path);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now_seconds();
  for (uint64_t i = 0; i < count; ++i)
    if (write(fd, line, sizeof line) != sizeof line) fail_with("write");
  MPI_Barrier(MPI_COMM_WORLD);
  const double end = now_seconds();
  if (lseek(fd, 0, SEEK_END) != (off_t)(count * (uint64_t)ranks * sizeof line) || close(fd) != 0) fail_with("the lines are not all there");
  if (rank == 0)
    printf("{\"mode\": \"appends\", \"bytes\": %llu, \"seconds\": %.9f, \"cpu_seconds\": %.6f, \"ranks\": %d, \"peak_rss_bytes\": 0}\n",
           (unsigned long long)(count * (uint64_t)ranks * sizeof line), end - start, cpu_seconds(), ranks);
}

static void call_on(const char *path, double seconds) {
  const char piece[64] = "";
  double longest = 0, last;
  uint64_t calls = 0;
  const int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0666);
  if (fd < 0) fail_with(path);
  const double start = last = now_seconds();
  while (last - start < seconds) {
    if (write(fd, piece, sizeof piece) != sizeof piece) fail_with("write");
    usleep(1000);
    const double now = now_seconds();
    if (now - last > longest) longest = now - last;
    last = now, ++calls;
  }
  if (close(fd) != 0) fail_with("close");
  printf("{\"mode\": \"calls\", \"bytes\": %llu, \"seconds\": %.6f, \"longest\": %.6f}\n", (unsigned long long)(calls * sizeof piece), last - start,
         longest);
}

int main(int argc, char **argv) {
  static const struct option known[] = {{"mode", 1, 0, 'm'},   {"path", 1, 0, 'p'},  {"sizes", 1, 0, 's'},
                                        {"verify", 0, 0, 'v'}, {"count", 1, 0, 'c'}, {"seconds", 1, 0, 't'},
                                        {"least", 1, 0, 'l'},  {"rest", 1, 0, 'r'},  {0, 0, 0, 0}};
  const char *mode = "", *path = "";
  char *sizes = 0;
  uint64_t count = 0;
  double seconds = 0;
  int verify = 0, c;
  MPI_Init(&argc, &argv);
  while ((c = getopt_long(argc, argv, "", known, 0)) != -1) {
    if (c == 'm') mode = optarg;
    else if (c == 'p') path = optarg;
    else if (c == 's') sizes = optarg;
    else if (c == 'v') verify = 1;
    else if (c == 'c') count = strtoull(optarg, 0, 10);
    else if (c == 'r') rest_us = (useconds_t)strtoul(optarg, 0, 10);
    else if (c == 'l') least_bytes = strtoull(optarg, 0, 10);
    else if (c == 't') seconds = atof(optarg);
    else fail("an unknown option");
  }
  if (!strcmp(mode, "clock")) ask_the_clock(count);
  else if (!strcmp(mode, "sends")) send_and_ask(count);
  else if (!strcmp(mode, "appends")) append_lines(path, count);
  else if (!strcmp(mode, "calls")) call_on(path, seconds);
  else if (sizes) move_all(mode, path, sizes, verify);
  MPI_Finalize();
  return 0;
}
