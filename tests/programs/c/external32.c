/* Data representations: external32 is big-endian with fixed sizes, internal and native are read back by the same MPI. */
#include "check.h"

static void external32_is_big_endian(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "external32", MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_set_view(file, (MPI_Offset)rank * 4096, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
  int numbers[1000], back[1000];
  for (int i = 0; i < 1000; ++i) numbers[i] = (int)(0x01020304u * (unsigned)(i + 1)) + rank;
  MPI_Status status;
  OK(MPI_File_write_at(file, 0, numbers, 1000, MPI_INT, &status));
  MOVED(&status, MPI_INT, 1000);
  MIDDLE();
  OK(MPI_File_read_at(file, 0, back, 1000, MPI_INT, &status));
  MOVED(&status, MPI_INT, 1000);
  CHECK(memcmp(numbers, back, sizeof numbers) == 0, "read other numbers than were written");
  OK(MPI_File_set_view(file, (MPI_Offset)rank * 4096, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  unsigned char bytes[8];
  OK(MPI_File_read_at(file, 0, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(bytes[0] == 1 && bytes[1] == 2 && bytes[2] == 3 && bytes[3] == 4 + rank, "the first int lies as %d %d %d %d", bytes[0], bytes[1], bytes[2],
        bytes[3]);
  OK(MPI_File_close(&file));
}

static void external32_of_other_types(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "external32_more", MPI_MODE_CREATE | MPI_MODE_RDWR);
  double doubles[100], doubles_back[100];
  short shorts[100], shorts_back[100];
  for (int i = 0; i < 100; ++i) {
    doubles[i] = i * 1.5 + rank;
    shorts[i] = (short)(i * 3 - rank);
  }
  OK(MPI_File_set_view(file, (MPI_Offset)rank * 2048, MPI_DOUBLE, MPI_DOUBLE, "external32", MPI_INFO_NULL));
  OK(MPI_File_write_at_all(file, 0, doubles, 100, MPI_DOUBLE, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at_all(file, 0, doubles_back, 100, MPI_DOUBLE, MPI_STATUS_IGNORE));
  CHECK(memcmp(doubles, doubles_back, sizeof doubles) == 0, "doubles changed");
  OK(MPI_File_set_view(file, (MPI_Offset)rank * 2048 + 1024, MPI_SHORT, MPI_SHORT, "external32", MPI_INFO_NULL));
  OK(MPI_File_write_at_all(file, 0, shorts, 100, MPI_SHORT, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at_all(file, 0, shorts_back, 100, MPI_SHORT, MPI_STATUS_IGNORE));
  CHECK(memcmp(shorts, shorts_back, sizeof shorts) == 0, "shorts changed");
  OK(MPI_File_set_view(file, (MPI_Offset)rank * 2048, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  unsigned char bytes[8], reversed[8];
  OK(MPI_File_read_at(file, 8, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE));
  for (int i = 0; i < 8; ++i) reversed[i] = ((unsigned char *)&doubles[1])[7 - i];
  CHECK(memcmp(bytes, reversed, 8) == 0, "the second double is not big-endian in the file");
  OK(MPI_File_close(&file));
}

static void type_extents(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "external32", MPI_MODE_RDONLY);
  MPI_Aint extent = 0;
  OK(MPI_File_get_type_extent(file, MPI_INT, &extent));
  CHECK(extent == 4, "a native int is %ld bytes", (long)extent);
  OK(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL));
  OK(MPI_File_get_type_extent(file, MPI_INT, &extent));
  CHECK(extent == 4, "an external32 int is %ld bytes", (long)extent);
  OK(MPI_File_get_type_extent(file, MPI_DOUBLE, &extent));
  CHECK(extent == 8, "an external32 double is %ld bytes", (long)extent);
  char representation[MPI_MAX_DATAREP_STRING];
  MPI_Offset displacement;
  MPI_Datatype etype, filetype;
  OK(MPI_File_get_view(file, &displacement, &etype, &filetype, representation));
  CHECK(strcmp(representation, "external32") == 0, "representation is %s", representation);
  OK(MPI_File_close(&file));
}

static void internal_comes_back(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "internal", MPI_MODE_CREATE | MPI_MODE_RDWR);
  OK(MPI_File_set_view(file, (MPI_Offset)rank * 8000, MPI_DOUBLE, MPI_DOUBLE, "internal", MPI_INFO_NULL));
  double numbers[500], back[500];
  for (int i = 0; i < 500; ++i) numbers[i] = i + rank * 0.5;
  OK(MPI_File_write_all(file, numbers, 500, MPI_DOUBLE, MPI_STATUS_IGNORE));
  OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  OK(MPI_File_read_all(file, back, 500, MPI_DOUBLE, MPI_STATUS_IGNORE));
  CHECK(memcmp(numbers, back, sizeof numbers) == 0, "read other numbers than were written");
  OK(MPI_File_close(&file));
}

static void unknown_representation_is_refused(void) {
  MPI_File file = open_file(MPI_COMM_WORLD, "external32", MPI_MODE_RDONLY);
  FAILS(MPI_ERR_UNSUPPORTED_DATAREP, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "nobody's", MPI_INFO_NULL));
  OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
  static const Entry entries[] = {{"external32_is_big_endian", external32_is_big_endian},
                                  {"external32_of_other_types", external32_of_other_types},
                                  {"type_extents", type_extents},
                                  {"internal_comes_back", internal_comes_back},
                                  {"unknown_representation_is_refused", unknown_representation_is_refused},
                                  {NULL, NULL}};
  return run_sections(argc, argv, entries);
}
