/* Fails to open a file, which stays MPI's own business, then writes one that is opened behind the library's back:
 * the handle is unknown to the front end, so every call must pass. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_File file;
  char data[10] = "012345678";
  int (*native_open)(MPI_Comm, const char*, int, MPI_Info, MPI_File*);
  void* mpi;
  MPI_Init(&argc, &argv);
  mpi = dlopen(argv[2], RTLD_LAZY | RTLD_NOLOAD);
  native_open = (int (*)(MPI_Comm, const char*, int, MPI_Info, MPI_File*))dlsym(mpi, "PMPI_File_open");
  native_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  printf("write %d\n", MPI_File_write_at(file, 0, data, 10, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
