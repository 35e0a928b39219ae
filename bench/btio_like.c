/* Writes time steps of a block-tridiagonal solver's solution in the manner of NAS BT-IO (subtype "full"): the grid of
   points^3 cells of five doubles is cut into q^3 blocks, and each of q^2 ranks owns q of them, one in every plane of
   blocks (diagonal multi-partition). In the file that is a nested strided view of many small pieces (points / q * 40
   bytes each); in memory each block has two layers of ghost cells round it, as the solver keeps it. One collective
   write per step. All steps are made before the clock starts. */
#include <getopt.h>

#include "program.h"

enum { components = 5, ghost = 2, max_q = 8 };

struct solver {
  int rank, ranks, q, points, steps, edge, padded; /* edge of a block; with its ghosts */
  int writes, sync, check;
  const char *path;
  int corner[max_q][3]; /* of each block of this rank, in blocks: z, y, x */
  uint64_t block_doubles, step_doubles, mine;
  double *data;
  MPI_Datatype memory, view;
};

static void parse(struct solver *s, int argc, char **argv) {
  static const struct option known[] = {{"mode", 1, 0, 'm'}, {"path", 1, 0, 'p'},   {"points", 1, 0, 'n'}, {"steps", 1, 0, 't'},
                                        {"sync", 0, 0, 's'}, {"verify", 0, 0, 'v'}, {0, 0, 0, 0}};
  int c;
  s->points = 96;
  s->steps = 5;
  s->writes = 1;
  while ((c = getopt_long(argc, argv, "", known, 0)) != -1) {
    if (c == 'm') s->writes = !strcmp(optarg, "write");
    else if (c == 'p') s->path = optarg;
    else if (c == 'n') s->points = atoi(optarg);
    else if (c == 't') s->steps = atoi(optarg);
    else if (c == 's') s->sync = 1;
    else if (c == 'v') s->check = 1;
    else fail("unknown option; see the head of bench/btio_like.c");
  }
  if (!s->path) fail("--path is missing");
}

static void partition(struct solver *s) {
  for (s->q = 1; s->q * s->q < s->ranks; ++s->q) {
  }
  if (s->q * s->q != s->ranks || s->q > max_q) fail("the number of ranks must be a square of at most 8 x 8");
  if (s->points % s->q) fail("points must be a multiple of the square root of the ranks");
  s->edge = s->points / s->q;
  s->padded = s->edge + 2 * ghost;
  for (int b = 0; b < s->q; ++b) {
    s->corner[b][0] = b;
    s->corner[b][1] = (s->rank / s->q + b) % s->q;
    s->corner[b][2] = (s->rank % s->q + b) % s->q;
  }
  s->block_doubles = (uint64_t)s->padded * s->padded * s->padded * components;
  s->step_doubles = (uint64_t)s->points * s->points * s->points * components;
  s->mine = (uint64_t)s->edge * s->edge * s->edge * components * s->q;
}

static void make_types(struct solver *s) {
  MPI_Datatype in_file[max_q], in_memory[max_q];
  MPI_Aint file_at[max_q], memory_at[max_q];
  int ones[max_q];
  int whole[4] = {s->points, s->points, s->points, components}, part[4] = {s->edge, s->edge, s->edge, components};
  int padded[4] = {s->padded, s->padded, s->padded, components}, inner[4] = {ghost, ghost, ghost, 0};
  for (int b = 0; b < s->q; ++b) {
    int start[4] = {s->corner[b][0] * s->edge, s->corner[b][1] * s->edge, s->corner[b][2] * s->edge, 0};
    MPI_Type_create_subarray(4, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &in_file[b]);
    MPI_Type_create_subarray(4, padded, part, inner, MPI_ORDER_C, MPI_DOUBLE, &in_memory[b]);
    file_at[b] = 0;
    memory_at[b] = (MPI_Aint)(b * s->block_doubles * sizeof(double));
    ones[b] = 1;
  }
  MPI_Type_create_struct(s->q, ones, file_at, in_file, &s->view);
  MPI_Type_create_struct(s->q, ones, memory_at, in_memory, &s->memory);
  MPI_Type_commit(&s->view);
  MPI_Type_commit(&s->memory);
  for (int b = 0; b < s->q; ++b) {
    MPI_Type_free(&in_file[b]);
    MPI_Type_free(&in_memory[b]);
  }
}

/* Calls `visit` with every double that this rank owns and its number in the whole file. */
static void for_each(struct solver *s, void (*visit)(double *, uint64_t)) {
  for (int step = 0; step < s->steps; ++step)
    for (int b = 0; b < s->q; ++b)
      for (int z = 0; z < s->edge; ++z)
        for (int y = 0; y < s->edge; ++y) {
          double *row = s->data + ((uint64_t)step * s->q + b) * s->block_doubles +
                        (((uint64_t)(z + ghost) * s->padded + y + ghost) * s->padded + ghost) * components;
          uint64_t gz = (uint64_t)(s->corner[b][0] * s->edge + z), gy = (uint64_t)(s->corner[b][1] * s->edge + y);
          uint64_t first =
              (uint64_t)step * s->step_doubles + ((gz * s->points + gy) * s->points + (uint64_t)(s->corner[b][2] * s->edge)) * components;
          for (int i = 0; i < s->edge * components; ++i) visit(row + i, first + i);
        }
}

static void put(double *at, uint64_t number) { *at = (double)number + 0.5; }

static void compare(double *at, uint64_t number) {
  if (*at != (double)number + 0.5) fail("a value that was read back is wrong");
}

static void transfer(struct solver *s, MPI_File file) {
  for (int step = 0; step < s->steps; ++step) {
    double *at = s->data + (uint64_t)step * s->q * s->block_doubles;
    MPI_Offset offset = (MPI_Offset)((uint64_t)step * s->mine); /* in doubles of the view */
    MPI_Status status;
    if (s->writes) must(MPI_File_write_at_all(file, offset, at, 1, s->memory, &status), "MPI_File_write_at_all");
    else must(MPI_File_read_at_all(file, offset, at, 1, s->memory, &status), "MPI_File_read_at_all");
    must_have_moved(&status, s->memory, 1, s->writes ? "MPI_File_write_at_all" : "MPI_File_read_at_all");
  }
}

int main(int argc, char **argv) {
  struct solver s;
  MPI_File file;
  memset(&s, 0, sizeof s);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
  parse(&s, argc, argv);
  partition(&s);
  make_types(&s);
  uint64_t doubles = (uint64_t)s.steps * s.q * s.block_doubles;
  s.data = malloc(doubles * sizeof(double));
  if (!s.data) fail("not enough memory for the data");
  memset(s.data, 0, doubles * sizeof(double));
  if (s.writes) for_each(&s, put);

  MPI_Barrier(MPI_COMM_WORLD);
  double cpu = cpu_seconds(), opening = now_seconds();
  must(MPI_File_open(MPI_COMM_WORLD, s.path, s.writes ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY, MPI_INFO_NULL, &file), "MPI_File_open");
  must(MPI_File_set_view(file, 0, MPI_DOUBLE, s.view, "native", MPI_INFO_NULL), "MPI_File_set_view");
  double opened = now_seconds();
  transfer(&s, file);
  if (s.sync) must(MPI_File_sync(file), "MPI_File_sync");
  double closing = now_seconds();
  must(MPI_File_close(&file), "MPI_File_close");
  double end = now_seconds();
  cpu = cpu_seconds() - cpu;

  struct outcome out = {"btio_like",
                        s.writes ? "write" : "read",
                        (uint64_t)s.steps * s.step_doubles * sizeof(double),
                        span_seconds(opening, opened),
                        span_seconds(opening, end),
                        span_seconds(closing, end),
                        cpu,
                        s.check};
  if (s.check && !s.writes) for_each(&s, compare);
  report(&out);
  MPI_Type_free(&s.view);
  MPI_Type_free(&s.memory);
  MPI_Finalize();
  return 0;
}
