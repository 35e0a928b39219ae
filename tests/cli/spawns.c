/* Two ranks are spawned. What one of them sends its parents, rank 0 of these writes to the file `told`; another one of them makes the file `own`.
   The barrier is for MPICH over UCX: it ends a rank that connects to one that has ended already. */
#include <mpi.h>
#include <stdio.h>
int main(int count, char **words) {
  MPI_Comm parent, other;
  int rank, told = 42;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL) {
    MPI_Comm_spawn(words[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
    if (rank == 0) {
      FILE *file = fopen("told", "w");
      MPI_Recv(&told, 1, MPI_INT, 1, 1, other, MPI_STATUS_IGNORE);
      fprintf(file, "%d\n", told);
      fclose(file);
    }
  } else {
    told += rank;
    if (rank == 1) MPI_Send(&told, 1, MPI_INT, 0, 1, parent);
    if (rank == 0) fclose(fopen("own", "w"));
  }
  MPI_Barrier(parent == MPI_COMM_NULL ? other : parent);
  MPI_Comm_disconnect(parent == MPI_COMM_NULL ? &other : &parent);
  return MPI_Finalize();
}
