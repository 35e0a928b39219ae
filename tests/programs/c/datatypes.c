/* Etypes, filetypes and memory datatypes of every shape. Each section compares with what MPI_Pack makes of the same data. */
#include "check.h"

enum { AREA = 1 << 16 };
static unsigned char area[AREA], back[AREA], expected[AREA];

/* Writes `count` of `memory` at etype 0 of the view, reads it back and compares every byte of the buffer: data equal, gaps untouched. */
static void round_trip(MPI_File file, unsigned char *base, unsigned char *base_back, int count, MPI_Datatype memory, int collective) {
  MPI_Status status;
  memset(back, 0xEE, AREA);
  if (collective) {
    OK(MPI_File_write_at_all(file, 0, base, count, memory, &status));
    MOVED(&status, memory, count);
    OK(MPI_File_read_at_all(file, 0, base_back, count, memory, &status));
  } else {
    OK(MPI_File_write_at(file, 0, base, count, memory, &status));
    MOVED(&status, memory, count);
    OK(MPI_File_read_at(file, 0, base_back, count, memory, &status));
  }
  MOVED(&status, memory, count);
  int size = 0, position = 0;
  static char packed[AREA];
  memset(expected, 0xEE, AREA);
  OK(MPI_Pack_size(count, memory, MPI_COMM_SELF, &size));
  if (size > AREA) MPI_Abort(MPI_COMM_WORLD, 3);
  OK(MPI_Pack(base, count, memory, packed, AREA, &position, MPI_COMM_SELF));
  size = position;
  position = 0;
  OK(MPI_Unpack(packed, size, &position, expected + (base_back - back), count, memory, MPI_COMM_SELF));
  for (int i = 0; i < AREA; ++i)
    if (back[i] != expected[i]) {
      fail_at(__LINE__, "byte %d of memory is %d, expected %d", i, back[i], expected[i]);
      return;
    }
}

/* Zeros first: where nothing lies yet, ROMIO's and OMPIO's data sieving leave rests of their buffers in the gaps. */
static void zeros_first(MPI_File file, int bytes) {
  char *zeros = calloc(1, (size_t)bytes);
  if (rank == 0) OK(MPI_File_write_at(file, 0, zeros, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  free(zeros);
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(file));
}

static MPI_Datatype committed(MPI_Datatype type) {
  OK(MPI_Type_commit(&type));
  return type;
}

/* struct of (int, gap, vector of shorts), in a vector of itself. */
static MPI_Datatype nested_type(void) {
  MPI_Datatype shorts, parts[2], record, nested;
  int lengths[2] = {1, 1};
  MPI_Aint places[2] = {0, 12};
  OK(MPI_Type_vector(3, 2, 5, MPI_SHORT, &shorts));
  parts[0] = MPI_INT;
  parts[1] = shorts;
  OK(MPI_Type_create_struct(2, lengths, places, parts, &record));
  OK(MPI_Type_create_hvector(4, 1, 64, record, &nested));
  MPI_Type_free(&shorts);
  MPI_Type_free(&record);
  return committed(nested);
}

static void nested_memory_types(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "nested", MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Datatype nested = nested_type();
  OK(MPI_File_set_view(file, (MPI_Offset)rank * 20000, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  round_trip(file, area, back, 20, nested, 0);
  MIDDLE();
  round_trip(file, area, back, 21, nested, 1);
  OK(MPI_File_close(&file));
  MPI_Type_free(&nested);
}

static void negative_displacements_in_memory(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "negative", MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Datatype backwards;
  int lengths[4] = {3, 7, 2, 4};
  MPI_Aint places[4] = {100, -40, -200, 16};
  OK(MPI_Type_create_hindexed(4, lengths, places, MPI_INT, &backwards));
  backwards = committed(backwards);
  OK(MPI_File_set_view(file, (MPI_Offset)rank * 5000, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  round_trip(file, area + 1024, back + 1024, 3, backwards, 0);
  round_trip(file, area + 1024, back + 1024, 3, backwards, 1);
  OK(MPI_File_close(&file));
  MPI_Type_free(&backwards);
}

static void holes_in_the_filetype(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "holes", MPI_MODE_CREATE | MPI_MODE_RDWR);
  zeros_first(file, 20000 * ranks);
  MPI_Datatype holes, resized;
  int lengths[3] = {2, 1, 5};
  int places[3] = {1, 10, 20};
  OK(MPI_Type_indexed(3, lengths, places, MPI_INT, &holes));
  OK(MPI_Type_create_resized(holes, 0, 40 * 4 * (MPI_Aint)ranks, &resized));
  resized = committed(resized);
  OK(MPI_File_set_view(file, (MPI_Offset)rank * 160 + 8, MPI_INT, resized, "native", MPI_INFO_NULL));
  round_trip(file, area, back, 800, MPI_INT, 1);
  round_trip(file, area, back, 803, MPI_INT, 0);
  MPI_Datatype nested = nested_type(); /* holes on both sides */
  MPI_Status status;
  OK(MPI_File_write_at(file, 808, area, 6 * 7, MPI_INT, &status));
  OK(MPI_File_close(&file));
  MPI_Type_free(&nested);
  MPI_Type_free(&holes);
  MPI_Type_free(&resized);
}

static void zero_size_types(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "zero", MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Datatype nothing;
  OK(MPI_Type_contiguous(0, MPI_INT, &nothing));
  nothing = committed(nothing);
  MPI_Status status;
  int count = -1;
  OK(MPI_File_write_at(file, 0, area, 5, nothing, &status));
  MPI_Get_count(&status, MPI_BYTE, &count);
  CHECK(count == 0, "moved %d bytes", count);
  OK(MPI_File_write_at_all(file, 0, area, 5, nothing, &status));
  OK(MPI_File_read_at_all(file, 0, area, 5, nothing, &status));
  MPI_Offset size = -1;
  OK(MPI_File_get_size(file, &size));
  CHECK(size == 0, "size is %lld", (long long)size);
  OK(MPI_File_close(&file));
  MPI_Type_free(&nothing);
}

static void unsigned_etype(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "unsigned", MPI_MODE_CREATE | MPI_MODE_RDWR);
  zeros_first(file, 2000 * ranks);
  MPI_Datatype every;
  OK(MPI_Type_vector(48, 3, 3 * ranks, MPI_UNSIGNED, &every)); /* all in one tile: the next one would overlap */
  every = committed(every);
  OK(MPI_File_set_view(file, (MPI_Offset)rank * 12, MPI_UNSIGNED, every, "native", MPI_INFO_NULL));
  MPI_Offset before = 0, after = 0;
  OK(MPI_File_seek(file, 24, MPI_SEEK_SET));
  OK(MPI_File_write(file, area, 100, MPI_UNSIGNED, MPI_STATUS_IGNORE));
  OK(MPI_File_get_position(file, &before));
  OK(MPI_File_seek(file, 24, MPI_SEEK_SET));
  OK(MPI_File_read(file, back, 100, MPI_UNSIGNED, MPI_STATUS_IGNORE));
  OK(MPI_File_get_position(file, &after));
  CHECK(before == 124 && after == 124, "positions are %lld and %lld", (long long)before, (long long)after);
  CHECK(memcmp(area, back, 400) == 0, "read other numbers than were written");
  OK(MPI_File_close(&file));
  MPI_Type_free(&every);
}

static void subarray(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "subarray", MPI_MODE_CREATE | MPI_MODE_RDWR);
  int whole[3] = {6, 40 * ranks, 30}, part[3] = {6, 40, 30}, at[3] = {0, 40 * rank, 0};
  MPI_Datatype block;
  OK(MPI_Type_create_subarray(3, whole, part, at, MPI_ORDER_C, MPI_SHORT, &block));
  block = committed(block);
  OK(MPI_File_set_view(file, 100, MPI_SHORT, block, "native", MPI_INFO_NULL));
  round_trip(file, area, back, 6 * 40 * 30, MPI_SHORT, 1);
  OK(MPI_File_set_view(file, 100, MPI_SHORT, MPI_SHORT, "native", MPI_INFO_NULL));
  short *row = (short *)back;
  OK(MPI_File_read_at_all(file, 0, row, 40 * 30 * ranks, MPI_SHORT, MPI_STATUS_IGNORE));
  CHECK(memcmp(row + (size_t)rank * 40 * 30, area, 40 * 30 * 2) == 0, "the block lies elsewhere in the file");
  OK(MPI_File_close(&file));
  MPI_Type_free(&block);
}

static void darray(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "darray", MPI_MODE_CREATE | MPI_MODE_RDWR);
  int sizes[2] = {37, 53 * ranks}, distributions[2] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC};
  int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 5}, grid[2] = {1, ranks};
  MPI_Datatype cyclic;
  OK(MPI_Type_create_darray(ranks, rank, 2, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT, &cyclic));
  cyclic = committed(cyclic);
  int bytes = 0;
  OK(MPI_Type_size(cyclic, &bytes));
  OK(MPI_File_set_view(file, 0, MPI_INT, cyclic, "native", MPI_INFO_NULL));
  round_trip(file, area, back, bytes / 4, MPI_INT, 1);
  OK(MPI_File_close(&file));
  int block[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE}, defaults[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
  int rows[2] = {ranks, 1};
  MPI_Datatype blocks;
  OK(MPI_Type_create_darray(ranks, rank, 2, sizes, block, defaults, rows, MPI_ORDER_FORTRAN, MPI_INT, &blocks));
  blocks = committed(blocks);
  OK(MPI_Type_size(blocks, &bytes));
  file = open_file(MPI_COMM_WORLD, "darray_fortran", MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_set_view(file, 4096, MPI_INT, blocks, "native", MPI_INFO_NULL));
  round_trip(file, area, back, bytes / 4, MPI_INT, 1);
  OK(MPI_File_close(&file));
  MPI_Type_free(&cyclic);
  MPI_Type_free(&blocks);
}

static void indexed_and_indexed_block_filetypes(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "indexed", MPI_MODE_CREATE | MPI_MODE_RDWR);
  zeros_first(file, 25000 * ranks);
  int places[4] = {0, 3, 8, 15};
  MPI_Datatype pairs, resized;
  OK(MPI_Type_create_indexed_block(4, 2, places, MPI_DOUBLE, &pairs));
  pairs = committed(pairs);
  OK(MPI_Type_create_resized(pairs, 0, 20 * 8 * (MPI_Aint)ranks, &resized));
  resized = committed(resized);
  OK(MPI_File_set_view(file, (MPI_Offset)rank * 160, MPI_DOUBLE, resized, "native", MPI_INFO_NULL));
  round_trip(file, area, back, 1000, MPI_DOUBLE, 1);
  OK(MPI_File_set_view(file, (MPI_Offset)rank * 160, pairs, resized, "native", MPI_INFO_NULL));
  round_trip(file, area, back, 8 * 20, MPI_DOUBLE, 0);
  OK(MPI_File_close(&file));
  MPI_Type_free(&pairs);
  MPI_Type_free(&resized);
}

int main(int argc, char **argv) {
  for (int i = 0; i < AREA; ++i) area[i] = mark(i, 77);
  static const Entry entries[] = {{"nested_memory_types", nested_memory_types},
                                  {"negative_displacements_in_memory", negative_displacements_in_memory},
                                  {"holes_in_the_filetype", holes_in_the_filetype},
                                  {"zero_size_types", zero_size_types},
                                  {"unsigned_etype", unsigned_etype},
                                  {"subarray", subarray},
                                  {"darray", darray},
                                  {"indexed_and_indexed_block_filetypes", indexed_and_indexed_block_filetypes},
                                  {NULL, NULL}};
  return run_sections(argc, argv, entries);
}
