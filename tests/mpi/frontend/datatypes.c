// Random nested datatypes in memory and as views, with MPI_Pack and MPI_Unpack as the oracle: what a type means
// in memory is what it means in a file.
#include "check.h"

enum { REGION = 1 << 20, ROUNDS = 120 };  // bytes of the file for each rank

static MPI_Datatype basic(void) {
  MPI_Datatype types[] = {MPI_BYTE, MPI_CHAR, MPI_SHORT, MPI_INT, MPI_UNSIGNED, MPI_FLOAT, MPI_DOUBLE, MPI_LONG_LONG, MPI_DOUBLE_INT};
  return types[random_below(sizeof types / sizeof *types)];
}

// Distances between consecutive pieces, in units of `extent`: never overlapping; in a file never backwards.
static void ascending(int n, int blocks[], int disps[]) {
  int at = random_below(3);
  for (int i = 0; i < n; ++i) {
    blocks[i] = random_below(4);
    disps[i] = at;
    at += blocks[i] + random_below(3);
  }
}

static MPI_Datatype derive(MPI_Datatype old, int in_file) {
  MPI_Datatype new = MPI_DATATYPE_NULL;
  MPI_Aint lb, extent, far[4];
  int n = 1 + random_below(4), blocks[4], disps[4], sizes[3], subsizes[3], starts[3], dims = 1 + random_below(3);
  MPI_Type_get_extent(old, &lb, &extent);
  switch (random_below(in_file ? 11 : 12)) {
    case 0: MPI_Type_contiguous(random_below(5), old, &new); break;
    case 1: MPI_Type_vector(n, 2, 2 + random_below(3), old, &new); break;
    case 2: MPI_Type_create_hvector(n, 1 + random_below(2), 2 * extent + random_below(20), old, &new); break;
    case 3: ascending(n, blocks, disps), MPI_Type_indexed(n, blocks, disps, old, &new); break;
    case 4:
      ascending(n, blocks, disps);
      for (int i = 0; i < n; ++i) far[i] = disps[i] * extent + i;
      MPI_Type_create_hindexed(n, blocks, far, old, &new);
      break;
    case 5:
      for (int i = 0; i < n; ++i) disps[i] = 3 * i + random_below(2);
      MPI_Type_create_indexed_block(n, 2, disps, old, &new);
      break;
    case 6:
      for (int i = 0; i < n; ++i) far[i] = (3 * i + random_below(2)) * extent + i;
      MPI_Type_create_hindexed_block(n, 2, far, old, &new);
      break;
    case 7: {
      MPI_Datatype two[2] = {old, basic()};
      MPI_Aint lb2, extent2;
      MPI_Type_get_extent(two[1], &lb2, &extent2);
      int lengths[2] = {1 + random_below(2), random_below(3)};
      MPI_Aint at[2] = {random_below(8), 0};
      at[1] = at[0] + lengths[0] * extent + lb + random_below(9);
      MPI_Type_create_struct(2, lengths, at, two, &new);
      break;
    }
    case 8:
      for (int d = 0; d < dims; ++d) {
        sizes[d] = 1 + random_below(4), subsizes[d] = 1 + random_below(sizes[d]);
        starts[d] = random_below(sizes[d] - subsizes[d] + 1);
      }
      MPI_Type_create_subarray(dims, sizes, subsizes, starts, random_below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old, &new);
      break;
    case 9: {
      int kinds[3], arguments[3], grid[3], all = 1;
      for (int d = 0; d < dims; ++d) {
        sizes[d] = 1 + random_below(6), grid[d] = 1 + random_below(2);
        kinds[d] = grid[d] == 1 ? MPI_DISTRIBUTE_NONE : random_below(2) ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC;
        arguments[d] = kinds[d] == MPI_DISTRIBUTE_CYCLIC ? 1 + random_below(3) : MPI_DISTRIBUTE_DFLT_DARG;
        all *= grid[d];
      }
      MPI_Type_create_darray(all, random_below(all), dims, sizes, kinds, arguments, grid, random_below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old,
                             &new);
      break;
    }
    case 10: {
      MPI_Aint true_lb, true_extent;
      MPI_Type_get_true_extent(old, &true_lb, &true_extent);
      MPI_Type_create_resized(old, 0, true_lb + true_extent + random_below(16), &new);
      break;
    }
    case 11:  // backwards, and before the buffer's start
      for (int i = 0; i < n; ++i) blocks[i] = 1, far[i] = -i * (extent + 3) - 40;
      MPI_Type_create_hindexed(n, blocks, far, old, &new);
      break;
  }
  if (new == MPI_DATATYPE_NULL) MPI_Type_dup(old, &new);  // Open MPI refuses some arrays
  return new;
}

static MPI_Datatype random_type(int in_file) {
  MPI_Datatype type, next;
  MPI_Type_dup(basic(), &type);
  for (int depth = 1 + random_below(3); depth > 0; --depth) {
    MPI_Aint lb, extent;
    next = derive(type, in_file);
    MPI_Aint true_lb, true_extent;
    MPI_Type_get_extent(next, &lb, &extent);
    MPI_Type_get_true_extent(next, &true_lb, &true_extent);
    // An explicit upper bound deep inside may make copies reach into each other.
    const int tight = true_lb < lb || true_lb + true_extent > lb + extent;
    if (extent > 20000 || extent < 0 || (in_file && (lb < 0 || tight))) {
      MPI_Type_free(&next);
      continue;
    }
    MPI_Type_free(&type);
    type = next;
  }
  MPI_Type_commit(&type);
  return type;
}

static char area[REGION], image[REGION], data[REGION], back[REGION];

// Any type in memory, plain bytes in the file.
static void in_memory(MPI_File fh, int round) {
  const int count = random_below(4);
  MPI_Status status;
  int size = 0, position = 0;
  MPI_Datatype type = random_type(0);
  MPI_Type_size(type, &size);
  char *middle = area + REGION / 2;
  fill(area, REGION, round * 64u + rank);
  MPI_Pack(middle, count, type, data, REGION, &position, MPI_COMM_SELF);
  SAME(position, size * count);
  const MPI_Offset at = (MPI_Offset)rank * REGION + random_below(5000);
  if (round % 2) {
    OK(MPI_File_write_at(fh, at, middle, count, type, &status));
    OK(MPI_File_read_at(fh, at, back, size * count, MPI_BYTE, &status));
  } else {
    OK(MPI_File_write_at_all(fh, at, middle, count, type, &status));
    OK(MPI_File_read_at_all(fh, at, back, size * count, MPI_BYTE, &status));
  }
  CHECK(memcmp(back, data, size * count) == 0);
  // And into the type again: nothing but its bytes changes.
  memset(area, 0x5a, REGION), memset(image, 0x5a, REGION);
  position = 0;
  MPI_Unpack(data, size * count, &position, image + REGION / 2, count, type, MPI_COMM_SELF);
  OK(MPI_File_read_at(fh, at, middle, count, type, &status));
  if (size != 0) SAME(count_of(&status, type), count);
  CHECK(memcmp(area, image, REGION) == 0);
  MPI_Type_free(&type);
}

// Any type as a view, plain bytes in memory.
static void in_views(MPI_File fh, int round) {
  MPI_Status status;
  MPI_Datatype type = random_type(1);
  MPI_Aint lb, extent;
  int size = 0, position = 0;
  MPI_Type_size(type, &size);
  MPI_Type_get_extent(type, &lb, &extent);
  int tiles = extent > 0 ? 1 + random_below(REGION / 4 / extent > 20 ? 20 : REGION / 4 / extent) : 1;
  const int bytes = size * tiles;
  const MPI_Offset disp = (MPI_Offset)rank * REGION;
  memset(image, 0, REGION);
  OK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  OK(MPI_File_write_at_all(fh, disp, image, REGION, MPI_BYTE, &status));
  OK(MPI_File_set_view(fh, disp, MPI_BYTE, type, "native", MPI_INFO_NULL));
  fill(data, bytes, round * 64u + rank);
  MPI_Unpack(data, bytes, &position, image, tiles, type, MPI_COMM_SELF);
  const int first = bytes ? random_below(bytes) : 0;  // in two parts, cut anywhere
  OK(MPI_File_write_at_all(fh, 0, data, first, MPI_BYTE, &status));
  OK(MPI_File_write_at(fh, first, data + first, bytes - first, MPI_BYTE, &status));
  OK(MPI_File_seek(fh, first / 2, MPI_SEEK_SET));
  OK(MPI_File_read_all(fh, back, bytes - first / 2, MPI_BYTE, &status));
  CHECK(memcmp(back, data + first / 2, bytes - first / 2) == 0);
  if (bytes > 0) {
    MPI_Offset place = -1;
    OK(MPI_File_get_byte_offset(fh, first, &place));
    OK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(fh, place, back, 1, MPI_BYTE, &status));
    CHECK(back[0] == data[first]);
  } else {
    OK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  }
  OK(MPI_File_read_at(fh, disp, back, REGION, MPI_BYTE, &status));
  CHECK(memcmp(back, image, REGION) == 0);
  MPI_Type_free(&type);
}

// HDF5 writes chunks by filetypes whose extent is less than what one copy spans, as an MPI computes it: one copy of each.
static void longer_than_its_extent(const char *path) {
  enum { BYTES = 12, EXTENT = 4 };
  MPI_Status status;
  MPI_Datatype whole, tile;
  char mine[2 * BYTES], back[BYTES];
  memset(mine, 'a' + rank, sizeof mine);
  MPI_Type_contiguous(BYTES, MPI_CHAR, &whole);
  MPI_Type_create_resized(whole, 0, EXTENT, &tile);
  MPI_Type_commit(&tile);
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_set_view(fh, (MPI_Offset)rank * BYTES, MPI_CHAR, tile, "native", MPI_INFO_NULL));
  OK(MPI_File_write_at_all(fh, 0, mine, BYTES, MPI_CHAR, &status));
  SAME(error_class(MPI_File_write_at_all(fh, 0, mine, 2 * BYTES, MPI_CHAR, &status)), MPI_ERR_TYPE);
  SAME(error_class(MPI_File_write_at(fh, 0, mine, 2 * BYTES, MPI_CHAR, &status)), MPI_ERR_TYPE);
  OK(MPI_File_write_at(fh, 0, mine, BYTES, MPI_CHAR, &status));
  OK(MPI_File_read_at_all(fh, 0, back, BYTES, MPI_CHAR, &status));
  CHECK(memcmp(back, mine, BYTES) == 0);
  OK(MPI_File_close(&fh));
  MPI_Type_free(&tile);
  MPI_Type_free(&whole);
}

// A view that covers bytes twice may be read.
static void overlapping(const char *path) {
  MPI_Status status;
  char text[16] = "";
  int blocks[2] = {4, 4}, disps[2] = {0, 2};
  MPI_Datatype twice;
  MPI_Type_indexed(2, blocks, disps, MPI_CHAR, &twice);
  MPI_Type_commit(&twice);
  MPI_File fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  if (rank == 0) OK(MPI_File_write_at(fh, 0, "abcdefghij", 10, MPI_CHAR, &status));
  SAME(error_class(MPI_File_set_view(fh, 0, MPI_CHAR, twice, "native", MPI_INFO_NULL)), MPI_ERR_TYPE);
  OK(MPI_File_close(&fh));
  fh = open_file(MPI_COMM_WORLD, path, MPI_MODE_RDONLY);
  OK(MPI_File_set_view(fh, 0, MPI_CHAR, twice, "native", MPI_INFO_NULL));
  OK(MPI_File_read_at_all(fh, 0, text, 16, MPI_CHAR, &status));
  SAME(count_of(&status, MPI_CHAR), 14);
  CHECK(memcmp(text, "abcdcdefghijij", 14) == 0);
  OK(MPI_File_close(&fh));
  MPI_Type_free(&twice);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  where = "protected";
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  random_state += 977u * rank;
  MPI_File fh = open_file(MPI_COMM_WORLD, in(argv[2], "types"), MPI_MODE_CREATE | MPI_MODE_RDWR);
  for (int round = 0; round < ROUNDS && failures == 0; ++round) in_memory(fh, round);
  OK(MPI_File_close(&fh));
  fh = open_file(MPI_COMM_WORLD, in(argv[2], "views"), MPI_MODE_CREATE | MPI_MODE_RDWR);
  for (int round = 0; round < ROUNDS / 4; ++round) in_views(fh, round);
  OK(MPI_File_close(&fh));
  overlapping(in(argv[2], "overlapping"));
  longer_than_its_extent(in(argv[2], "longer"));
  return finish();
}
