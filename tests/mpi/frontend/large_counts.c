// The _c twins: datatypes made with large counts mean the same as their small twins, in memory and as views.
#include "check.h"

#if MPI_VERSION >= 4
enum { SPAN = 4096, KINDS = 10 };
static char area[SPAN], one[SPAN], other[SPAN];

static MPI_Datatype make(int kind, int large) {
  MPI_Datatype new = MPI_DATATYPE_NULL, types[2] = {MPI_INT, MPI_DOUBLE};
  int blocks[2] = {2, 1}, disps[2] = {1, 5}, sizes[2] = {6, 8}, sub[2] = {3, 4}, starts[2] = {1, 2};
  int kinds[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[2] = {2, 2};
  MPI_Count blocks_c[2] = {2, 1}, disps_c[2] = {1, 5}, sizes_c[2] = {6, 8}, sub_c[2] = {3, 4}, starts_c[2] = {1, 2};
  MPI_Aint far[2] = {4, 40};
  MPI_Count far_c[2] = {4, 40};
  switch (kind) {
    case 0: large ? MPI_Type_contiguous_c(7, MPI_INT, &new) : MPI_Type_contiguous(7, MPI_INT, &new); break;
    case 1: large ? MPI_Type_vector_c(3, 2, 5, MPI_INT, &new) : MPI_Type_vector(3, 2, 5, MPI_INT, &new); break;
    case 2: large ? MPI_Type_create_hvector_c(3, 2, 50, MPI_INT, &new) : MPI_Type_create_hvector(3, 2, 50, MPI_INT, &new); break;
    case 3: large ? MPI_Type_indexed_c(2, blocks_c, disps_c, MPI_INT, &new) : MPI_Type_indexed(2, blocks, disps, MPI_INT, &new); break;
    case 4: large ? MPI_Type_create_hindexed_c(2, blocks_c, far_c, MPI_INT, &new) : MPI_Type_create_hindexed(2, blocks, far, MPI_INT, &new); break;
    case 5: large ? MPI_Type_create_indexed_block_c(2, 3, disps_c, MPI_INT, &new) : MPI_Type_create_indexed_block(2, 3, disps, MPI_INT, &new); break;
    case 6: large ? MPI_Type_create_struct_c(2, blocks_c, far_c, types, &new) : MPI_Type_create_struct(2, blocks, far, types, &new); break;
    case 7:
      large ? MPI_Type_create_subarray_c(2, sizes_c, sub_c, starts_c, MPI_ORDER_C, MPI_INT, &new)
            : MPI_Type_create_subarray(2, sizes, sub, starts, MPI_ORDER_C, MPI_INT, &new);
      break;
    case 8:
      large ? MPI_Type_create_darray_c(4, 2, 2, sizes_c, kinds, arguments, grid, MPI_ORDER_FORTRAN, MPI_INT, &new)
            : MPI_Type_create_darray(4, 2, 2, sizes, kinds, arguments, grid, MPI_ORDER_FORTRAN, MPI_INT, &new);
      break;
    case 9: large ? MPI_Type_create_resized_c(MPI_INT, 0, 20, &new) : MPI_Type_create_resized(MPI_INT, 0, 20, &new); break;
  }
  MPI_Type_commit(&new);
  return new;
}

static void compare(MPI_File fh, int kind) {
  MPI_Status status;
  MPI_Datatype small = make(kind, 0), large = make(kind, 1);
  const MPI_Offset base = (MPI_Offset)rank * SPAN;
  int size = 0, size_c = 0;
  MPI_Type_size(small, &size), MPI_Type_size(large, &size_c);
  SAME(size_c, size);
  fill(area, SPAN, 80u + kind);
  OK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  OK(MPI_File_write_at(fh, base, area, 2, small, &status));
  OK(MPI_File_read_at(fh, base, one, 2 * size, MPI_BYTE, &status));
  OK(MPI_File_write_at_c(fh, base, area, 2, large, &status));
  MPI_Count count = 0;
  OK(MPI_Get_count_c(&status, large, &count));
  SAME(count, 2);
  OK(MPI_File_read_at_c(fh, base, other, 2 * size, MPI_BYTE, &status));
  CHECK(memcmp(one, other, 2 * size) == 0);
  OK(MPI_File_set_view(fh, base, MPI_BYTE, small, "native", MPI_INFO_NULL));
  OK(MPI_File_write_at_all(fh, 0, area, 2 * size, MPI_BYTE, &status));
  OK(MPI_File_set_view(fh, base, MPI_BYTE, large, "native", MPI_INFO_NULL));
  OK(MPI_File_read_at_all_c(fh, 0, other, 2 * size, MPI_BYTE, &status));
  CHECK(memcmp(area, other, 2 * size) == 0);
  MPI_Type_free(&small), MPI_Type_free(&large);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  where = "protected";
  MPI_File fh = open_file(MPI_COMM_WORLD, in(argv[2], "large"), MPI_MODE_CREATE | MPI_MODE_RDWR);
  for (int kind = 0; kind < KINDS; ++kind) compare(fh, kind);
  OK(MPI_File_close(&fh));
  return finish();
}
#else
int main(int argc, char **argv) {
  begin(&argc, &argv);
  return finish();  // this MPI has no large counts
}
#endif
