! MPI-IO through `use mpi`: a subarray view written and read collectively, nonblocking, shared and split calls.
!   PROGRAM PREFIX [--pause FILE]
program view_use_mpi
  use mpi
  implicit none
  integer, parameter :: nx = 60, ny = 50
  character(1024) :: prefix, word, pause_file
  integer :: rank, ranks, code, i, j, moved, failures, all_failures
  integer :: file
  integer :: block
  integer :: request
  integer :: status(MPI_STATUS_SIZE)
  integer(MPI_OFFSET_KIND) :: offset, position
  double precision :: field(nx, ny), back(nx, ny)
  integer :: numbers(500), numbers_back(500)
  logical :: there

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  failures = 0
  pause_file = ' '
  call get_command_argument(1, prefix)
  do i = 2, command_argument_count() - 1
    call get_command_argument(i, word)
    if (word == '--pause') call get_command_argument(i + 1, pause_file)
  end do
  do j = 1, ny
    do i = 1, nx
      field(i, j) = i + 1000.0d0 * j + 1000000.0d0 * rank
    end do
  end do

  ! A subarray of one array of nx x (ny * ranks), behind 40 bytes.
  call MPI_File_open(MPI_COMM_WORLD, trim(prefix)//'.field', ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, file, code)
  call check(code == MPI_SUCCESS, 'open')
  call MPI_Type_create_subarray(2, [nx, ny * ranks], [nx, ny], [0, ny * rank], MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, &
                                block, code)
  call MPI_Type_commit(block, code)
  offset = 40
  call MPI_File_set_view(file, offset, MPI_DOUBLE_PRECISION, block, 'native', MPI_INFO_NULL, code)
  call check(code == MPI_SUCCESS, 'set_view')
  call MPI_File_write_all(file, field, nx * ny, MPI_DOUBLE_PRECISION, status, code)
  call check(code == MPI_SUCCESS, 'write_all')
  call MPI_Get_count(status, MPI_DOUBLE_PRECISION, moved, code)
  call check(moved == nx * ny, 'count of write_all')
  call middle()
  offset = 0
  back = 0
  call MPI_File_read_at_all(file, offset, back, nx * ny, MPI_DOUBLE_PRECISION, status, code)
  call check(code == MPI_SUCCESS .and. all(back == field), 'read_at_all')
  call MPI_File_get_position(file, position, code)
  call check(position == nx * ny, 'get_position')
  call MPI_File_close(file, code)
  call check(code == MPI_SUCCESS, 'close')
  call MPI_Type_free(block, code)

  ! Nonblocking, split and ordered.
  call MPI_File_open(MPI_COMM_WORLD, trim(prefix)//'.numbers', ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_INFO_NULL, file, code)
  do i = 1, 500
    numbers(i) = 1000 * rank + i
  end do
  offset = 2000 * rank
  call MPI_File_iwrite_at(file, offset, numbers, 500, MPI_INTEGER, request, code)
  call MPI_Wait(request, status, code)
  call MPI_Get_count(status, MPI_INTEGER, moved, code)
  call check(moved == 500, 'count of iwrite_at')
  offset = 2000 * (ranks + rank)
  call MPI_File_write_at_all_begin(file, offset, numbers, 500, MPI_INTEGER, code)
  call MPI_File_write_at_all_end(file, numbers, status, code)
  call check(code == MPI_SUCCESS, 'write_at_all_end')
  offset = 2000 * 2 * ranks
  call MPI_File_seek_shared(file, offset, MPI_SEEK_SET, code)
  call MPI_File_write_ordered(file, numbers, 500, MPI_INTEGER, status, code)
  call check(code == MPI_SUCCESS, 'write_ordered')
  do j = 0, 2
    numbers_back = 0
    offset = 2000 * (j * ranks + rank)
    call MPI_File_iread_at(file, offset, numbers_back, 500, MPI_INTEGER, request, code)
    call MPI_Wait(request, status, code)
    call check(all(numbers_back == numbers), 'iread_at')
  end do
  call MPI_File_get_size(file, position, code)
  call check(position <= 2000 * 3 * ranks, 'get_size')
  call MPI_File_close(file, code)

  ! A file that is not there is an error that comes back.
  call MPI_File_open(MPI_COMM_WORLD, trim(prefix)//'.absent', MPI_MODE_RDONLY, MPI_INFO_NULL, file, code)
  call check(code /= MPI_SUCCESS, 'opened a file that is not there')

  call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  if (rank == 0) print '(a, i0, a)', 'view_use_mpi: ', all_failures, ' failures'
  call MPI_Finalize(code)
  if (all_failures > 0) stop 1
contains
  subroutine check(fact, what)
    logical, intent(in) :: fact
    character(*), intent(in) :: what
    if (fact) return
    failures = failures + 1
    print '(3a, i0)', 'FAIL use_mpi: ', what, ', rank ', rank
  end subroutine

  ! With --pause: rank 0 makes the file and all wait until it is gone again.
  subroutine middle()
    integer :: unit, tries
    call MPI_Barrier(MPI_COMM_WORLD, code)
    if (pause_file == ' ') return
    if (rank == 0) then
      open (newunit=unit, file=trim(pause_file), action='write')
      close (unit)
      do tries = 1, 600
        inquire (file=trim(pause_file), exist=there)
        if (.not. there) exit
        call execute_command_line('sleep 0.1')
      end do
    end if
    call MPI_Barrier(MPI_COMM_WORLD, code)
  end subroutine
end program
