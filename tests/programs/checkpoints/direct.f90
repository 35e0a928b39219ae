! One checkpoint file of all ranks, by Fortran's direct access: each rank opens it by itself and writes its own records.
program direct
  use mpi
  implicit none
  integer, parameter :: rows = 50, numbers = 100
  integer :: rank, ranks, step, row, length, code
  real(8) :: own(numbers)
  character(32) :: name
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  inquire(iolength=length) own
  do step = 1, 2
    write (name, '("ck/ck.", i0)') step
    if (rank == 0) then
      open (10, file=name, access='direct', form='unformatted', recl=length, status='replace')
    end if
    call MPI_Barrier(MPI_COMM_WORLD, code)
    if (rank /= 0) open (10, file=name, access='direct', form='unformatted', recl=length, status='old')
    do row = 1, rows
      own = step * 1000 + rank * 100 + row
      write (10, rec=(row - 1) * ranks + rank + 1) own
    end do
    close (10)
    call MPI_Barrier(MPI_COMM_WORLD, code)
    ! What the next rank has written.
    open (10, file=name, access='direct', form='unformatted', recl=length, status='old', action='read')
    do row = 1, rows
      read (10, rec=(row - 1) * ranks + mod(rank + 1, ranks) + 1) own
      if (any(own /= step * 1000 + mod(rank + 1, ranks) * 100 + row)) stop 1
    end do
    close (10)
    call MPI_Barrier(MPI_COMM_WORLD, code)
  end do
  call MPI_Finalize(code)
end program
