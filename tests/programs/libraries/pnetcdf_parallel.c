/* PnetCDF: a record variable and a fixed one, written collectively, read back after reopening.
 *   PROGRAM PREFIX [--pause FILE] */
#include <pnetcdf.h>

#include "../c/check.h"

enum { ROWS = 100, COLS = 200 };
static double data[ROWS][COLS], back[ROWS][COLS];

static void nc(int code, const char *what) { CHECK(code == NC_NOERR, "%s: %s", what, ncmpi_strerror(code)); }

static void write_and_reopen(void) {
  int file, dims[3], fixed, records;
  /* PnetCDF aligns variables on the striping unit that the file has; here the same bytes are wanted on all of them. */
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "nc_var_align_size", "512");
  MPI_Info_set(info, "nc_record_align_size", "512");
  MPI_Info_set(info, "nc_header_align_size", "512");
  nc(ncmpi_create(MPI_COMM_WORLD, path("nc"), NC_CLOBBER | NC_64BIT_DATA, info, &file), "create");
  MPI_Info_free(&info);
  nc(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dims[0]), "def_dim");
  nc(ncmpi_def_dim(file, "row", (MPI_Offset)ranks * ROWS, &dims[1]), "def_dim");
  nc(ncmpi_def_dim(file, "col", COLS, &dims[2]), "def_dim");
  nc(ncmpi_def_var(file, "fixed", NC_DOUBLE, 2, dims + 1, &fixed), "def_var");
  nc(ncmpi_def_var(file, "records", NC_DOUBLE, 3, dims, &records), "def_var");
  nc(ncmpi_enddef(file), "enddef");
  for (int r = 0; r < ROWS; ++r)
    for (int c = 0; c < COLS; ++c) data[r][c] = (rank * ROWS + r) * 1000.0 + c;
  MPI_Offset start[3] = {0, (MPI_Offset)rank * ROWS, 0}, count[3] = {1, ROWS, COLS};
  nc(ncmpi_put_vara_double_all(file, fixed, start + 1, count + 1, &data[0][0]), "put fixed");
  for (int step = 0; step < 3; ++step) {
    start[0] = step;
    nc(ncmpi_put_vara_double_all(file, records, start, count, &data[0][0]), "put record");
    if (step == 1) MIDDLE();
  }
  nc(ncmpi_close(file), "close");
  nc(ncmpi_open(MPI_COMM_WORLD, path("nc"), NC_NOWRITE, MPI_INFO_NULL, &file), "open");
  nc(ncmpi_inq_varid(file, "records", &records), "inq_varid");
  start[0] = 2;
  nc(ncmpi_get_vara_double_all(file, records, start, count, &back[0][0]), "get record");
  CHECK(memcmp(data, back, sizeof data) == 0, "read other data than was written");
  nc(ncmpi_inq_varid(file, "fixed", &fixed), "inq_varid");
  nc(ncmpi_get_vara_double_all(file, fixed, start + 1, count + 1, &back[0][0]), "get fixed");
  CHECK(memcmp(data, back, sizeof data) == 0, "read other fixed data than was written");
  nc(ncmpi_close(file), "close");
}

/* Independent data mode over what was filled and written together, and back: each handle reads what the other one has written. */
static void independent(void) {
  int file, dims[2], fixed, other;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "nc_var_align_size", "512");
  MPI_Info_set(info, "nc_header_align_size", "512");
  nc(ncmpi_create(MPI_COMM_WORLD, path("indep.nc"), NC_CLOBBER | NC_64BIT_DATA, info, &file), "create");
  MPI_Info_free(&info);
  nc(ncmpi_set_fill(file, NC_FILL, NULL), "set_fill");
  nc(ncmpi_def_dim(file, "row", (MPI_Offset)ranks * ROWS, &dims[0]), "def_dim");
  nc(ncmpi_def_dim(file, "col", COLS, &dims[1]), "def_dim");
  nc(ncmpi_def_var(file, "fixed", NC_DOUBLE, 2, dims, &fixed), "def_var");
  nc(ncmpi_def_var(file, "other", NC_DOUBLE, 2, dims, &other), "def_var");
  int of_record[2], records;
  nc(ncmpi_def_dim(file, "time", NC_UNLIMITED, &of_record[0]), "def_dim");
  of_record[1] = dims[0];
  nc(ncmpi_def_var(file, "records", NC_DOUBLE, 2, of_record, &records), "def_var");
  nc(ncmpi_enddef(file), "enddef");
  const int next = (rank + 1) % ranks;
  const MPI_Offset mine[2] = {(MPI_Offset)rank * ROWS, 0}, of_next[2] = {(MPI_Offset)next * ROWS, 0}, count[2] = {ROWS, COLS};
  for (int r = 0; r < ROWS; ++r)
    for (int c = 0; c < COLS; ++c) data[r][c] = (rank * ROWS + r) * 1000.0 + c;
  nc(ncmpi_put_vara_double_all(file, other, mine, count, &data[0][0]), "put together");
  MPI_Barrier(MPI_COMM_WORLD); /* no rank waits in that for what another one reads then */
  nc(ncmpi_begin_indep_data(file), "begin_indep_data");
  nc(ncmpi_get_vara_double(file, other, of_next, count, &back[0][0]), "get alone");
  CHECK(back[1][2] == (next * ROWS + 1) * 1000.0 + 2, "alone: read other data than was written together: %g", back[1][2]);
  nc(ncmpi_put_vara_double(file, fixed, mine, count, &data[0][0]), "put alone");
  nc(ncmpi_end_indep_data(file), "end_indep_data");
  MPI_Barrier(MPI_COMM_WORLD);
  nc(ncmpi_get_vara_double_all(file, fixed, of_next, count, &back[0][0]), "get together");
  CHECK(back[1][2] == (next * ROWS + 1) * 1000.0 + 2, "together: read other data than was written alone: %g", back[1][2]);
  for (int step = 0; step < 2; ++step) { /* behind the end that each rank's own handle has seen */
    const MPI_Offset at[2] = {step, (MPI_Offset)rank * ROWS}, of_others[2] = {step, (MPI_Offset)next * ROWS}, one[2] = {1, ROWS};
    nc(ncmpi_put_vara_double_all(file, records, at, one, &data[step][0]), "put a record together");
    MPI_Barrier(MPI_COMM_WORLD);
    nc(ncmpi_begin_indep_data(file), "begin_indep_data");
    nc(ncmpi_get_vara_double(file, records, of_others, one, &back[0][0]), "get a record alone");
    CHECK(back[0][2] == (next * ROWS + step) * 1000.0 + 2, "alone: read another record than was written together: %g", back[0][2]);
    nc(ncmpi_end_indep_data(file), "end_indep_data");
  }
  nc(ncmpi_begin_indep_data(file), "begin_indep_data");
  data[3][4] = -1;
  nc(ncmpi_put_vara_double(file, fixed, mine, count, &data[0][0]), "put alone");
  MPI_Barrier(MPI_COMM_WORLD);
  nc(ncmpi_redef(file), "redef"); /* the data moves */
  static char text[3000];
  memset(text, 't', sizeof text);
  nc(ncmpi_put_att_text(file, NC_GLOBAL, "note", sizeof text, text), "put_att");
  nc(ncmpi_enddef(file), "enddef");
  nc(ncmpi_close(file), "close");
  nc(ncmpi_open(MPI_COMM_WORLD, path("indep.nc"), NC_NOWRITE, MPI_INFO_NULL, &file), "open");
  nc(ncmpi_get_vara_double_all(file, fixed, mine, count, &back[0][0]), "get fixed");
  CHECK(memcmp(data, back, sizeof data) == 0, "read other data than was written alone");
  data[3][4] = (rank * ROWS + 3) * 1000.0 + 4;
  nc(ncmpi_get_vara_double_all(file, other, mine, count, &back[0][0]), "get other");
  CHECK(memcmp(data, back, sizeof data) == 0, "read other data than was written together");
  nc(ncmpi_close(file), "close");
}

int main(int argc, char **argv) {
  static const Entry entries[] = {{"write_and_reopen", write_and_reopen}, {"independent", independent}, {NULL, NULL}};
  return run_sections(argc, argv, entries);
}
