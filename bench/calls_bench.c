/* What one small call costs: calls_bench --mode write|read|scatter|fwrite|putc|mpi|mpi-scatter --path FILE --calls N
   N calls of 512 bytes, one after another or at places at random in a file of 2 MiB that is there already, in rounds of 2000. `seconds` is
   what all would take if each round were as quick as the quickest: a difference of some tens of nanoseconds drowns in anything else.
   fwrite and putc (of one byte): a stream; mpi: MPI_File_write_at; else plain calls. */
#include <fcntl.h>
#include <getopt.h>
#include <unistd.h>

#include "program.h"

enum { piece = 512, pieces = 4096, round_calls = 2000 };

struct calls {
  const char *mode;
  int fd;
  FILE *stream;
  MPI_File file;
  char data[piece];
  uint32_t place;
};

static uint32_t next_place(struct calls *c) {
  c->place ^= c->place << 13, c->place ^= c->place >> 17, c->place ^= c->place << 5;
  return c->place % pieces;
}

static void one(struct calls *c, int i) {
  MPI_Status status;
  if (!strncmp(c->mode, "mpi", 3)) {
    const MPI_Offset at = (MPI_Offset)(c->mode[3] ? next_place(c) : (uint32_t)(i % pieces)) * piece;
    must(MPI_File_write_at(c->file, at, c->data, piece, MPI_BYTE, &status), "MPI_File_write_at");
    must_have_moved(&status, MPI_BYTE, piece, "MPI_File_write_at");
    return;
  }
  if (c->stream) {
    if (c->mode[0] == 'p' ? putc('x', c->stream) == EOF : fwrite(c->data, 1, piece, c->stream) != piece) fail(c->mode);
    return;
  }
  ssize_t done;
  if (!strcmp(c->mode, "write")) done = write(c->fd, c->data, piece);
  else if (!strcmp(c->mode, "read")) done = read(c->fd, c->data, piece);
  else done = pwrite(c->fd, c->data, piece, (off_t)next_place(c) * piece);
  if (done != piece) fail(c->mode);
}

int main(int argc, char **argv) {
  static const struct option known[] = {{"mode", 1, 0, 'm'}, {"path", 1, 0, 'p'}, {"calls", 1, 0, 'n'}, {0, 0, 0, 0}};
  struct calls c = {.mode = "", .fd = -1, .place = 7};
  char *path = "";
  uint64_t calls = 0;
  int option;
  MPI_Init(&argc, &argv);
  while ((option = getopt_long(argc, argv, "", known, 0)) != -1) {
    if (option == 'm') c.mode = optarg;
    else if (option == 'p') path = optarg;
    else if (option == 'n') calls = strtoull(optarg, 0, 10);
    else fail("options");
  }
  if (!strncmp(c.mode, "mpi", 3)) must(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &c.file), "MPI_File_open");
  else if ((c.fd = open(path, O_CREAT | O_RDWR, 0666)) < 0) fail(path);
  const int of_stream = !strcmp(c.mode, "fwrite") || !strcmp(c.mode, "putc");
  if (of_stream && !(c.stream = fdopen(c.fd, "r+"))) fail("fdopen");
  const double cpu = cpu_seconds();
  double least = 1e9;
  for (uint64_t done = 0; done < calls; done += round_calls) {
    if (c.stream) rewind(c.stream);
    else if (c.fd >= 0 && lseek(c.fd, 0, SEEK_SET)) fail("lseek");
    const double start = now_seconds();
    for (int i = 0; i < round_calls; ++i) one(&c, i);
    const double took = now_seconds() - start;
    if (done && took < least) least = took; /* the first round makes the file's pages */
  }
  struct outcome o = {"calls_bench",       c.mode, calls * (c.mode[0] == 'p' ? 1 : piece), 0, least / round_calls * (double)calls, 0,
                      cpu_seconds() - cpu, 0};
  if (c.stream) fclose(c.stream);
  else if (c.fd >= 0) close(c.fd);
  else must(MPI_File_close(&c.file), "MPI_File_close");
  report(&o);
  MPI_Finalize();
  return 0;
}
