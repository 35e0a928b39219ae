/* A normal MPI program that opens, writes and closes one file. Prints what it got from the calls. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int handler_ran = 0;
static void on_error(MPI_File* file, int* code, ...) {
  MPI_Offset size = 0;
  (void)code;
  MPI_File_get_size(*file, &size);
  ++handler_ran;
}

/* As HDF5 does: files that are still open are closed when MPI ends. */
static int close_at_the_end(MPI_Comm comm, int key, void* file, void* extra) {
  (void)comm;
  (void)key;
  (void)extra;
  return MPI_File_close((MPI_File*)file);
}

int main(int argc, char** argv) {
  MPI_File file, late;
  int key;
  MPI_Request request;
  MPI_Status status;
  MPI_Errhandler handler;
  char data[64] = "0123456789";
  int wrote = 0, code, flag;
  MPI_Aint extent = 0;
  MPI_Init(&argc, &argv);
  MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_write_at(file, 0, data, 10, MPI_BYTE, &status);
  MPI_Get_count(&status, MPI_BYTE, &wrote);
#ifdef HAVE_LARGE_COUNT
  MPI_File_write_at_c(file, 10, data, 10, MPI_BYTE, &status);
#endif
  PMPI_File_write_at(file, 20, data, 10, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_iwrite_at(file, 30, data, 10, MPI_BYTE, &request);
  MPI_Wait(&request, &status);
  MPI_File_iread_at(file, 0, data, 10, MPI_BYTE, &request);
  for (flag = 0; !flag;) MPI_Test(&request, &flag, &status);
  MPI_File_get_type_extent(file, MPI_INT, &extent);
  MPI_File_create_errhandler(on_error, &handler);
  MPI_File_set_errhandler(file, handler);
  MPI_File_seek(file, -1, MPI_SEEK_SET);
  code = MPI_File_preallocate(file, 77);
  MPI_File_close(&file);
  MPI_Errhandler_free(&handler);
  printf("wrote %d extent %d handler %d thrown %d data %s\n", wrote, (int)extent, handler_ran, code == MPI_ERR_INTERN,
         strcmp(data, "0123456789") == 0 ? "right" : "wrong");
  MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &late);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, close_at_the_end, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, &late);
  MPI_Finalize();
  return 0;
}
