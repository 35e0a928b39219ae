// The bytes that external32 puts into a file, and back.
#include <wchar.h>

#include "check.h"

static unsigned char raw[4096];
static MPI_File fh;
static MPI_Offset base;

static void view(MPI_Datatype etype, const char *datarep) { OK(MPI_File_set_view(fh, base, etype, etype, (char *)datarep, MPI_INFO_NULL)); }

// Writes `count` of `type`, demands `bytes` in the file, and the same value back.
static void expect(const char *what, const void *value, int count, MPI_Datatype type, size_t memory, const char *bytes, int length) {
  MPI_Status status;
  char back[256];
  view(type, "external32");
  OK(MPI_File_write_at(fh, 0, value, count, type, &status));
  SAME(count_of(&status, type), count);
  memset(back, 0, sizeof back);
  OK(MPI_File_read_at(fh, 0, back, count, type, &status));
  SAME(count_of(&status, type), count);
  if (type != MPI_LONG_DOUBLE) CHECK(memcmp(back, value, memory) == 0);
  else CHECK(*(long double *)back == *(const long double *)value);
  view(MPI_BYTE, "native");
  OK(MPI_File_read_at(fh, 0, raw, length, MPI_BYTE, &status));
  if (memcmp(raw, bytes, length) != 0) {
    printf("%s:", what);
    for (int i = 0; i < length; ++i) printf(" %02x", raw[i]);
    printf("\n"), ++failures;
  }
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  where = "protected";
  fh = open_file(MPI_COMM_WORLD, in(argv[2], "external32"), MPI_MODE_CREATE | MPI_MODE_RDWR);
  base = rank * 4096;
  MPI_Status status;

  const short s = 0x1234;
  const int i[2] = {0x01020304, -2};
  const long l[2] = {0x01020304, -3};
  const unsigned long ul = 0xfffffffful;
  const long long ll = 0x0102030405060708ll;
  const float f = 1.0f;
  const double d = -2.0;
  const long double ld = 1.5L;
  const wchar_t w[2] = {L'A', 0x20ac};
  const double complex_[2] = {1.0, 2.0};
  expect("short", &s, 1, MPI_SHORT, 2, "\x12\x34", 2);
  expect("int", i, 2, MPI_INT, 8, "\x01\x02\x03\x04\xff\xff\xff\xfe", 8);
  expect("long", l, 2, MPI_LONG, 2 * sizeof(long), "\x01\x02\x03\x04\xff\xff\xff\xfd", 8);
  expect("unsigned long", &ul, 1, MPI_UNSIGNED_LONG, sizeof ul, "\xff\xff\xff\xff", 4);
  expect("long long", &ll, 1, MPI_LONG_LONG, 8, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
  expect("float", &f, 1, MPI_FLOAT, 4, "\x3f\x80\0\0", 4);
  expect("double", &d, 1, MPI_DOUBLE, 8, "\xc0\0\0\0\0\0\0\0", 8);
  expect("long double", &ld, 1, MPI_LONG_DOUBLE, sizeof ld, "\x3f\xff\x80\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
  expect("wchar", w, 2, MPI_WCHAR, sizeof w, "\0A\x20\xac", 4);
  expect("char", "abc", 3, MPI_CHAR, 3, "abc", 3);
  expect("double complex", complex_, 1, MPI_C_DOUBLE_COMPLEX, 16, "\x3f\xf0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0", 16);
  const struct {
    double value;
    int index;
  } pair = {1.0, 5};
  view(MPI_BYTE, "external32");
  OK(MPI_File_write_at(fh, 0, &pair, 1, MPI_DOUBLE_INT, &status));
  view(MPI_BYTE, "native");
  OK(MPI_File_read_at(fh, 0, raw, 12, MPI_BYTE, &status));
  CHECK(memcmp(raw, "\x3f\xf0\0\0\0\0\0\0\0\0\0\5", 12) == 0);

  // A struct in memory, a strided view in the file: distances there are in the file's sizes.
  struct {
    int a;
    char c;
    long b;
  } two[2] = {{1, 'x', 2}, {3, 'y', 4}}, back[2];
  int lengths[3] = {1, 1, 1};
  MPI_Aint at[3] = {0, 4, 8};
  MPI_Datatype types[3] = {MPI_INT, MPI_CHAR, MPI_LONG}, record, strided;
  MPI_Type_create_struct(3, lengths, at, types, &record);
  MPI_Type_commit(&record);
  MPI_Type_vector(2, 9, 12, MPI_BYTE, &strided);
  MPI_Type_commit(&strided);
  OK(MPI_File_set_view(fh, base, MPI_BYTE, strided, "external32", MPI_INFO_NULL));
  OK(MPI_File_write_at_all(fh, 0, two, 2, record, &status));
  SAME(count_of(&status, record), 2);
  memset(back, 0, sizeof back);
  OK(MPI_File_read_at_all(fh, 0, back, 2, record, &status));
  CHECK(back[1].a == 3 && back[1].c == 'y' && back[1].b == 4 && back[0].b == 2);
  MPI_Aint extent = 0;
  OK(MPI_File_get_type_extent(fh, MPI_LONG, &extent));
  SAME(extent, 4);
  view(MPI_BYTE, "native");
  OK(MPI_File_read_at(fh, 0, raw, 21, MPI_BYTE, &status));
  CHECK(memcmp(raw, "\0\0\0\1x\0\0\0\2", 9) == 0);
  CHECK(memcmp(raw + 12, "\0\0\0\3y\0\0\0\4", 9) == 0);

  MPI_Datatype longs;
  MPI_Type_vector(3, 1, 2, MPI_LONG, &longs);
  MPI_Type_commit(&longs);
  const long three[3] = {7, 8, 9};
  OK(MPI_File_set_view(fh, base, MPI_LONG, longs, "external32", MPI_INFO_NULL));
  OK(MPI_File_write_at_all(fh, 0, three, 3, MPI_LONG, &status));
  view(MPI_BYTE, "native");
  OK(MPI_File_read_at(fh, 0, raw, 20, MPI_BYTE, &status));
  CHECK(raw[3] == 7 && raw[11] == 8 && raw[19] == 9);

  // What does not fit is refused, alone and together.
  const long large = 1l << 40;
  view(MPI_LONG, "external32");
  SAME(error_class(MPI_File_write_at(fh, 0, &large, 1, MPI_LONG, &status)), MPI_ERR_CONVERSION);
  const int class = error_class(MPI_File_write_at_all(fh, 0, rank == 0 ? &large : three, 1, MPI_LONG, &status));
  SAME(class, rank == 0 ? MPI_ERR_CONVERSION : MPI_SUCCESS);
  MPI_Type_free(&longs), MPI_Type_free(&record), MPI_Type_free(&strided);
  OK(MPI_File_close(&fh));
  return finish();
}
