/* 2-D heat equation on a Cartesian grid of ranks: an ordinary MPI program.
 *
 *   heat OUTPUT NX NY STEPS EVERY [--restart] [--pause-ms N]
 *
 * The field is NX x NY cells, T' = T + 0.2 * laplace(T), fixed borders. Every EVERY steps the whole field goes
 * into the one shared file OUTPUT through a subarray view and a collective write. The file is
 *
 *   64 bytes header: "HEAT0001", then int64 NX, NY, EVERY, written by rank 0; the rest is zero
 *   frame 0, 1, 2, ...: NX * NY doubles each, row-major; frame f is the field after f * EVERY steps
 *
 * --restart reads the last frame back and computes STEPS steps more. --pause-ms waits after every frame.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER_BYTES = 64, NORTH = 0, SOUTH = 1, WEST = 2, EAST = 3 };

typedef struct {
  int nx, ny;       /* cells of the whole field */
  int rows, cols;   /* cells of this rank */
  int row0, col0;   /* where they begin */
  int neighbour[4]; /* ranks, or MPI_PROC_NULL at the border */
  MPI_Comm comm;
  int rank;
  double *now, *next; /* (rows + 2) x (cols + 2), with halo */
} Field;

static void check(int code, const char *what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "heat: %s: %s\n", what, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void share(int cells, int parts, int part, int *first, int *count) {
  *first = (int)((int64_t)cells * part / parts);
  *count = (int)((int64_t)cells * (part + 1) / parts) - *first;
}

static double *cell(const Field *f, double *grid, int row, int col) { return grid + (size_t)row * (f->cols + 2) + col; }

static void set_up(Field *f, int nx, int ny) {
  int ranks, dims[2] = {0, 0}, periods[2] = {0, 0}, coords[2];
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Dims_create(ranks, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &f->comm);
  MPI_Comm_rank(f->comm, &f->rank);
  MPI_Cart_coords(f->comm, f->rank, 2, coords);
  MPI_Cart_shift(f->comm, 0, 1, &f->neighbour[NORTH], &f->neighbour[SOUTH]);
  MPI_Cart_shift(f->comm, 1, 1, &f->neighbour[WEST], &f->neighbour[EAST]);
  f->nx = nx;
  f->ny = ny;
  share(nx, dims[0], coords[0], &f->row0, &f->rows);
  share(ny, dims[1], coords[1], &f->col0, &f->cols);
  size_t cells = (size_t)(f->rows + 2) * (f->cols + 2);
  f->now = calloc(cells, sizeof(double));
  f->next = calloc(cells, sizeof(double));
  if (!f->now || !f->next) {
    fprintf(stderr, "heat: out of memory\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  /* A hot block and a gentle slope, exactly representable, so that every cell differs from its neighbours. */
  for (int r = 1; r <= f->rows; ++r)
    for (int c = 1; c <= f->cols; ++c) {
      int i = f->row0 + r - 1, j = f->col0 + c - 1;
      int hot = 4 * i > nx && 4 * i < 3 * nx && 4 * j > ny && 4 * j < 3 * ny;
      *cell(f, f->now, r, c) = (hot ? 100.0 : 0.0) + i * 0.25 + j * 0.125;
    }
}

static void exchange_halo(Field *f) {
  MPI_Datatype column;
  MPI_Type_vector(f->rows, 1, f->cols + 2, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  double *g = f->now;
  MPI_Sendrecv(cell(f, g, 1, 1), f->cols, MPI_DOUBLE, f->neighbour[NORTH], 0, cell(f, g, f->rows + 1, 1), f->cols, MPI_DOUBLE, f->neighbour[SOUTH], 0,
               f->comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(cell(f, g, f->rows, 1), f->cols, MPI_DOUBLE, f->neighbour[SOUTH], 1, cell(f, g, 0, 1), f->cols, MPI_DOUBLE, f->neighbour[NORTH], 1,
               f->comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(cell(f, g, 1, 1), 1, column, f->neighbour[WEST], 2, cell(f, g, 1, f->cols + 1), 1, column, f->neighbour[EAST], 2, f->comm,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(cell(f, g, 1, f->cols), 1, column, f->neighbour[EAST], 3, cell(f, g, 1, 0), 1, column, f->neighbour[WEST], 3, f->comm,
               MPI_STATUS_IGNORE);
  MPI_Type_free(&column);
}

static void step(Field *f) {
  exchange_halo(f);
  for (int r = 1; r <= f->rows; ++r)
    for (int c = 1; c <= f->cols; ++c) {
      double *t = cell(f, f->now, r, c);
      double laplace = t[-1] + t[1] + *cell(f, f->now, r - 1, c) + *cell(f, f->now, r + 1, c) - 4.0 * *t;
      int i = f->row0 + r - 1, j = f->col0 + c - 1;
      int border = i == 0 || j == 0 || i == f->nx - 1 || j == f->ny - 1;
      *cell(f, f->next, r, c) = border ? *t : *t + 0.2 * laplace;
    }
  double *swap = f->now;
  f->now = f->next;
  f->next = swap;
}

/* Frame `frame` of the file is this rank's block of the field: out (write != 0) or in. */
static void transfer(Field *f, MPI_File file, int64_t frame, int write) {
  int field[2] = {f->nx, f->ny}, block[2] = {f->rows, f->cols}, at[2] = {f->row0, f->col0};
  int halo[2] = {f->rows + 2, f->cols + 2}, inside[2] = {1, 1};
  MPI_Datatype in_file, in_memory;
  MPI_Type_create_subarray(2, field, block, at, MPI_ORDER_C, MPI_DOUBLE, &in_file);
  MPI_Type_create_subarray(2, halo, block, inside, MPI_ORDER_C, MPI_DOUBLE, &in_memory);
  MPI_Type_commit(&in_file);
  MPI_Type_commit(&in_memory);
  MPI_Offset start = HEADER_BYTES + frame * (MPI_Offset)f->nx * f->ny * (MPI_Offset)sizeof(double);
  check(MPI_File_set_view(file, start, MPI_DOUBLE, in_file, "native", MPI_INFO_NULL), "setting the view");
  MPI_Status status;
  if (write) check(MPI_File_write_all(file, f->now, 1, in_memory, &status), "writing a frame");
  else check(MPI_File_read_all(file, f->now, 1, in_memory, &status), "reading a frame");
  int moved = 0;
  MPI_Get_count(&status, in_memory, &moved);
  if (moved != 1) {
    fprintf(stderr, "heat: rank %d moved only a part of frame %lld\n", f->rank, (long long)frame);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Type_free(&in_file);
  MPI_Type_free(&in_memory);
}

static void write_header(Field *f, MPI_File file, int every) {
  char header[HEADER_BYTES] = "HEAT0001";
  int64_t numbers[3] = {f->nx, f->ny, every};
  memcpy(header + 8, numbers, sizeof numbers);
  if (f->rank == 0) check(MPI_File_write_at(file, 0, header, HEADER_BYTES, MPI_BYTE, MPI_STATUS_IGNORE), "writing the header");
}

/* Checks the header against the arguments; returns the number of frames in the file. */
static int64_t read_header(Field *f, MPI_File file, int every) {
  char header[HEADER_BYTES];
  int64_t numbers[3];
  check(MPI_File_read_at_all(file, 0, header, HEADER_BYTES, MPI_BYTE, MPI_STATUS_IGNORE), "reading the header");
  memcpy(numbers, header + 8, sizeof numbers);
  if (memcmp(header, "HEAT0001", 8) != 0 || numbers[0] != f->nx || numbers[1] != f->ny || numbers[2] != every) {
    fprintf(stderr, "heat: the file was written with other settings\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Offset size = 0;
  check(MPI_File_get_size(file, &size), "asking for the size");
  return (size - HEADER_BYTES) / ((MPI_Offset)f->nx * f->ny * (MPI_Offset)sizeof(double));
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int restart = 0, pause_ms = 0;
  for (int i = 6; i < argc; ++i) {
    if (strcmp(argv[i], "--restart") == 0) restart = 1;
    if (strcmp(argv[i], "--pause-ms") == 0 && i + 1 < argc) pause_ms = atoi(argv[++i]);
  }
  if (argc < 6 || atoi(argv[2]) < 4 || atoi(argv[3]) < 4 || atoi(argv[5]) < 1) {
    fprintf(stderr, "usage: heat OUTPUT NX NY STEPS EVERY [--restart] [--pause-ms N]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  int steps = atoi(argv[4]), every = atoi(argv[5]);
  Field field;
  set_up(&field, atoi(argv[2]), atoi(argv[3]));

  MPI_File file;
  int mode = MPI_MODE_RDWR | (restart ? 0 : MPI_MODE_CREATE);
  check(MPI_File_open(field.comm, argv[1], mode, MPI_INFO_NULL, &file), "opening the output");
  MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
  int64_t frame = 0;
  if (restart) {
    frame = read_header(&field, file, every) - 1;
    transfer(&field, file, frame, 0);
  } else {
    write_header(&field, file, every);
    transfer(&field, file, 0, 1);
  }
  for (int s = 1; s <= steps; ++s) {
    step(&field);
    if (s % every != 0) continue;
    transfer(&field, file, ++frame, 1);
    if (pause_ms > 0) usleep((useconds_t)pause_ms * 1000);
  }
  check(MPI_File_close(&file), "closing the output");
  if (field.rank == 0) printf("heat: %lld frames in %s\n", (long long)frame + 1, argv[1]);
  free(field.now);
  free(field.next);
  MPI_Comm_free(&field.comm);
  MPI_Finalize();
  return 0;
}
