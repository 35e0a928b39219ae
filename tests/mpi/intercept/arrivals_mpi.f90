! The module: integers, checked.
program arrivals_mpi
  use mpi
  implicit none
  integer :: file, request, status(MPI_STATUS_SIZE)
  integer :: ierr, n
  character(len=10) :: data
  character(len=512) :: path
  integer(kind=MPI_OFFSET_KIND) :: at
  data = "0123456789"
  at = 0
  call get_command_argument(1, path)
  call MPI_INIT(ierr)
  call MPI_FILE_OPEN(MPI_COMM_WORLD, trim(path), ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, file, ierr)
  call MPI_FILE_WRITE_AT(file, at, data, 10, MPI_CHARACTER, status, ierr)
  call MPI_GET_COUNT(status, MPI_CHARACTER, n, ierr)
  at = 10
  call MPI_FILE_IWRITE_AT(file, at, data, 10, MPI_CHARACTER, request, ierr)
  call MPI_WAIT(request, status, ierr)
  call MPI_FILE_CLOSE(file, ierr)
  print "(a,i0)", "wrote ", n
  call MPI_FINALIZE(ierr)
end program
