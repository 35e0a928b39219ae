/* Parallel HDF5: a data set written by hyperslabs collectively, read back after reopening, an attribute, an extension.
 *   PROGRAM PREFIX [--pause FILE] */
#include <hdf5.h>

#include "../c/check.h"

enum { ROWS = 200, COLS = 300 };
static int data[ROWS][COLS], back[ROWS][COLS];

static hid_t over_mpi(void) {
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  return access;
}

static hid_t my_rows(hid_t set, hid_t *memory) {
  hsize_t start[2] = {(hsize_t)rank * ROWS, 0}, count[2] = {ROWS, COLS};
  hid_t space = H5Dget_space(set);
  CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0, "hyperslab");
  *memory = H5Screate_simple(2, count, NULL);
  return space;
}

static void write_and_reopen(void) {
  hid_t access = over_mpi();
  hid_t file = H5Fcreate(path("h5"), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  CHECK(file >= 0, "H5Fcreate");
  hsize_t whole[2] = {(hsize_t)ranks * ROWS, COLS};
  hid_t space = H5Screate_simple(2, whole, NULL), memory;
  hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_obj_track_times(creation, 0); /* the same bytes in every run */
  hid_t set = H5Dcreate2(file, "field", H5T_NATIVE_INT, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  H5Pclose(creation);
  hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
  for (int r = 0; r < ROWS; ++r)
    for (int c = 0; c < COLS; ++c) data[r][c] = (rank * ROWS + r) * COLS + c;
  hid_t rows = my_rows(set, &memory);
  CHECK(H5Dwrite(set, H5T_NATIVE_INT, memory, rows, transfer, data) >= 0, "H5Dwrite");
  CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0, "H5Fflush");
  H5Sclose(rows);
  H5Sclose(memory);
  H5Dclose(set);
  CHECK(H5Fclose(file) >= 0, "H5Fclose");
  MIDDLE();
  CHECK(H5Fis_hdf5(path("h5")) > 0, "H5Fis_hdf5 does not know the file");
  file = H5Fopen(path("h5"), H5F_ACC_RDWR, access);
  CHECK(file >= 0, "H5Fopen");
  set = H5Dopen2(file, "field", H5P_DEFAULT);
  rows = my_rows(set, &memory);
  CHECK(H5Dread(set, H5T_NATIVE_INT, memory, rows, transfer, back) >= 0, "H5Dread");
  CHECK(memcmp(data, back, sizeof data) == 0, "read other data than was written");
  hid_t scalar = H5Screate(H5S_SCALAR);
  hid_t attribute = H5Acreate2(set, "steps", H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT);
  int steps = 42;
  CHECK(H5Awrite(attribute, H5T_NATIVE_INT, &steps) >= 0, "H5Awrite");
  H5Aclose(attribute);
  H5Sclose(scalar);
  H5Sclose(rows);
  H5Sclose(memory);
  H5Dclose(set);
  CHECK(H5Fclose(file) >= 0, "H5Fclose");
  H5Sclose(space);
  H5Pclose(transfer);
  H5Pclose(access);
}

int main(int argc, char **argv) {
  static const Entry entries[] = {{"write_and_reopen", write_and_reopen}, {NULL, NULL}};
  return run_sections(argc, argv, entries);
}
