/* HDF5's serial driver: locks, a superblock that is rewritten, chunks, attributes, and a file opened twice. */
#include <fcntl.h>
#include <hdf5.h>
#include "pause.h"

#define CHECK(what)                                      \
  do {                                                   \
    if ((what) < 0) {                                    \
      fprintf(stderr, "line %d: %s\n", __LINE__, #what); \
      exit(1);                                           \
    }                                                    \
  } while (0)

int main(int argc, char **argv) {
  static double values[100][200], back[100][200];
  char name[2000];
  if (argc != 2) return 2;
  for (int i = 0; i < 100; ++i)
    for (int j = 0; j < 200; ++j) values[i][j] = i * 1000 + j;
  snprintf(name, sizeof name, "%s.h5", argv[1]);
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  hid_t create = H5Pcreate(H5P_FILE_CREATE);
  H5Pset_obj_track_times(create, 0); /* the same bytes in every run */
  hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, create, access);
  CHECK(file);
  hsize_t size[] = {100, 200}, chunk[] = {10, 30};
  hid_t space = H5Screate_simple(2, size, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_obj_track_times(how, 0);
  H5Pset_chunk(how, 2, chunk);
  for (int i = 0; i < 10; ++i) {
    char set[20];
    snprintf(set, sizeof set, "set%d", i);
    hid_t data = H5Dcreate(file, set, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    CHECK(data);
    CHECK(H5Dwrite(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    CHECK(H5Dclose(data));
    if (i == 4) half_way(argv[1]);
  }
  CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL));
  CHECK(H5Fclose(file));
  file = H5Fopen(name, H5F_ACC_RDWR, access);
  CHECK(file);
  hid_t again = H5Fopen(name, H5F_ACC_RDWR, access);
  CHECK(again);
  CHECK(H5Ldelete(file, "set3", H5P_DEFAULT));
  hid_t data = H5Dopen(again, "set7", H5P_DEFAULT);
  CHECK(H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, back));
  if (memcmp(values, back, sizeof values)) return 1;
  CHECK(H5Dclose(data));
  CHECK(H5Fclose(again));
  CHECK(H5Fclose(file));
  return 0;
}
