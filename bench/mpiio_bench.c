/* Reads and writes a file through MPI-IO in the manner of IOR: a total, a block size, a pattern; prints one line of
   JSON. Data is made and memory is touched before the clock starts; `seconds` runs from before the open until the file
   is closed, so that nobody wins by doing work earlier or leaving it for later.

   Patterns: segmented  rank r owns one contiguous region and goes through it block by block (independent calls);
             strided    block i belongs to rank i mod ranks, and each step is one collective call.
   With --file-per-process every rank has a file of its own on MPI_COMM_SELF; --path may then name several files,
   separated by commas: rank r takes the r-th.
   With --copies N every block is written to N files of its own, PATH, PATH.1, ...: what N plain copies cost by hand. */
#include <getopt.h>

#include "program.h"

enum mode { mode_start, mode_write, mode_read, mode_random };

struct options {
  enum mode mode;
  char *path;
  uint64_t bytes, block; /* bytes: over all ranks */
  int strided, sync, verify, file_per_process, copies;
};

struct job {
  struct options o;
  int rank, ranks;
  uint64_t mine;       /* bytes of this rank */
  uint64_t file;       /* number of this rank's file: 0 where it is shared */
  unsigned char *data; /* `mine` bytes: block i of this rank's accesses at i * block */
  uint64_t *offsets;   /* where in the file block i lies */
  uint64_t blocks;
};

/* Word w of file f. Every word differs from every other, and the multiplier is odd, so that a word found in a
   wrong place tells which place it came from. */
static uint64_t word_value(uint64_t file, uint64_t word) { return ((file << 44) + word + 1) * 0x9E3779B97F4A7C15ull; }

static uint64_t parse_bytes(const char *text) {
  char *end;
  uint64_t value = strtoull(text, &end, 10);
  if (*end == 'k') value <<= 10;
  if (*end == 'M') value <<= 20;
  if (*end == 'G') value <<= 30;
  return value;
}

static enum mode parse_mode(const char *text) {
  if (!strcmp(text, "write")) return mode_write;
  if (!strcmp(text, "read")) return mode_read;
  if (!strcmp(text, "random")) return mode_random;
  return mode_start;
}

static struct options parse(int argc, char **argv) {
  static const struct option known[] = {{"mode", 1, 0, 'm'},    {"path", 1, 0, 'p'}, {"bytes", 1, 0, 'b'},  {"block", 1, 0, 'k'},
                                        {"strided", 0, 0, 't'}, {"sync", 0, 0, 's'}, {"verify", 0, 0, 'v'}, {"file-per-process", 0, 0, 'f'},
                                        {"copies", 1, 0, 'c'},  {0, 0, 0, 0}};
  struct options o = {mode_start, 0, 64 << 20, 1 << 20, 0, 0, 0, 0, 1};
  int c;
  while ((c = getopt_long(argc, argv, "", known, 0)) != -1) {
    if (c == 'm') o.mode = parse_mode(optarg);
    else if (c == 'p') o.path = optarg;
    else if (c == 'b') o.bytes = parse_bytes(optarg);
    else if (c == 'k') o.block = parse_bytes(optarg);
    else if (c == 't') o.strided = 1;
    else if (c == 's') o.sync = 1;
    else if (c == 'v') o.verify = 1;
    else if (c == 'f') o.file_per_process = 1;
    else if (c == 'c') o.copies = atoi(optarg);
    else fail("unknown option; see the head of bench/mpiio_bench.c");
  }
  if (o.mode != mode_start && !o.path) fail("--path is missing");
  if (o.copies < 1 || o.copies > 8) fail("--copies is between 1 and 8");
  return o;
}

/* The r-th of a comma-separated list, around again when it is shorter. */
static char *nth_path(char *list, int r) {
  char *paths[64];
  int n = 0;
  for (char *p = strtok(list, ","); p && n < 64; p = strtok(0, ",")) paths[n++] = p;
  return paths[r % n];
}

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return *state >> 33;
}

static void plan(struct job *j) {
  const struct options *o = &j->o;
  uint64_t random = 88172645463325252ull + (uint64_t)j->rank;
  uint64_t region = o->file_per_process ? 0 : j->mine * (uint64_t)j->rank;
  for (uint64_t i = 0; i < j->blocks; ++i) {
    if (o->mode == mode_random) j->offsets[i] = next_random(&random) % (o->bytes / o->block) * o->block;
    else if (o->strided) j->offsets[i] = (i * (uint64_t)j->ranks + (uint64_t)j->rank) * o->block;
    else j->offsets[i] = region + i * o->block;
  }
}

static void prepare(struct job *j) {
  const struct options *o = &j->o;
  j->mine = o->bytes / (uint64_t)j->ranks;
  j->blocks = j->mine / o->block;
  if (j->blocks * o->block * (uint64_t)j->ranks != o->bytes) fail("bytes are not a multiple of ranks times block");
  j->file = o->file_per_process ? (uint64_t)j->rank : 0;
  j->data = malloc(j->mine);
  j->offsets = malloc(j->blocks * sizeof *j->offsets);
  if (!j->data || !j->offsets) fail("not enough memory for the data");
  plan(j);
  if (o->mode != mode_write) {
    memset(j->data, 0xA5, j->mine);
    return;
  }
  for (uint64_t i = 0; i < j->blocks; ++i) {
    uint64_t *words = (uint64_t *)(j->data + i * o->block), first = j->offsets[i] / 8;
    for (uint64_t w = 0; w < o->block / 8; ++w) words[w] = word_value(j->file, first + w);
  }
}

static void transfer(struct job *j, MPI_File *files) {
  const struct options *o = &j->o;
  const int count = (int)o->block;
  for (uint64_t n = 0; n < j->blocks * (uint64_t)o->copies; ++n) {
    const uint64_t i = n / (uint64_t)o->copies;
    MPI_File file = files[n % (uint64_t)o->copies];
    void *at = j->data + i * o->block;
    MPI_Offset offset = (MPI_Offset)j->offsets[i];
    MPI_Status status;
    int code;
    if (o->mode == mode_write) code = (o->strided ? MPI_File_write_at_all : MPI_File_write_at)(file, offset, at, count, MPI_BYTE, &status);
    else code = (o->strided ? MPI_File_read_at_all : MPI_File_read_at)(file, offset, at, count, MPI_BYTE, &status);
    must(code, o->mode == mode_write ? "MPI_File_write" : "MPI_File_read");
    must_have_moved(&status, MPI_BYTE, count, o->mode == mode_write ? "MPI_File_write" : "MPI_File_read");
  }
}

static void verify(const struct job *j) {
  for (uint64_t i = 0; i < j->blocks; ++i) {
    const uint64_t *words = (const uint64_t *)(j->data + i * j->o.block), first = j->offsets[i] / 8;
    for (uint64_t w = 0; w < j->o.block / 8; ++w)
      if (words[w] != word_value(j->file, first + w)) {
        char text[160];
        snprintf(text, sizeof text, "rank %d read wrong data at byte %llu", j->rank, (unsigned long long)(8 * (first + w)));
        fail(text);
      }
  }
}

static void open_copy(const struct job *j, int copy, MPI_File *file) {
  const struct options *o = &j->o;
  const int access = o->mode == mode_write ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
  char *path = o->file_per_process ? nth_path(o->path, j->rank) : o->path;
  char name[4096];
  snprintf(name, sizeof name, copy ? "%s.%d" : "%s", path, copy);
  must(MPI_File_open(o->file_per_process ? MPI_COMM_SELF : MPI_COMM_WORLD, name, access, MPI_INFO_NULL, file), "MPI_File_open");
}

static void run(struct job *j) {
  static const char *const names[] = {"start", "write", "read", "random"};
  struct options *o = &j->o;
  struct outcome out = {"mpiio_bench", names[o->mode], o->bytes, 0, 0, 0, 0, o->verify};
  MPI_File files[8];

  prepare(j);
  MPI_Barrier(MPI_COMM_WORLD);
  double cpu = cpu_seconds(), opening = now_seconds();
  for (int c = 0; c < o->copies; ++c) open_copy(j, c, &files[c]);
  double opened = now_seconds();
  transfer(j, files);
  for (int c = 0; o->sync && c < o->copies; ++c) must(MPI_File_sync(files[c]), "MPI_File_sync");
  double closing = now_seconds();
  for (int c = 0; c < o->copies; ++c) must(MPI_File_close(&files[c]), "MPI_File_close");
  double end = now_seconds();
  out.cpu_seconds = cpu_seconds() - cpu;

  out.open_seconds = span_seconds(opening, opened);
  out.seconds = span_seconds(opening, end);
  out.close_seconds = span_seconds(closing, end);
  if (o->verify && o->mode != mode_write) verify(j);
  report(&out);
}

int main(int argc, char **argv) {
  struct job j;
  memset(&j, 0, sizeof j);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &j.ranks);
  j.o = parse(argc, argv);
  if (j.o.mode == mode_start) {
    struct outcome nothing = {"mpiio_bench", "start", 0, 0, 0, 0, 0, 0};
    report(&nothing);
  } else {
    run(&j);
  }
  MPI_Finalize();
  return 0;
}
