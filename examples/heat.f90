! 2-D heat equation on a Cartesian grid of ranks: an ordinary MPI program in Fortran (use mpi_f08).
!
!   heat OUTPUT NX NY STEPS EVERY [--restart] [--pause-ms N]
!
! The same file as the C program's: 64 bytes of header ("HEAT0001", then NX, NY, EVERY as 64-bit integers), then one frame
! of NX x NY doubles after every EVERY steps, in Fortran's order. --restart reads the last frame back and goes on.
module heat_field
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: real64, int64, error_unit
  implicit none
  integer(MPI_OFFSET_KIND), parameter :: header_bytes = 64
  integer :: nx, ny, rows, cols, row0, col0, rank
  integer :: north, south, west, east
  type(MPI_Comm) :: comm
  real(real64), allocatable :: now(:, :), next(:, :)   ! (0:rows+1, 0:cols+1), with halo
contains
  subroutine check(code, what)
    integer, intent(in) :: code
    character(*), intent(in) :: what
    character(MPI_MAX_ERROR_STRING) :: text
    integer :: length
    if (code == MPI_SUCCESS) return
    call MPI_Error_string(code, text, length)
    write (error_unit, '(4a)') 'heat: ', what, ': ', text(1:length)
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine

  subroutine share(cells, parts, part, first, count)
    integer, intent(in) :: cells, parts, part
    integer, intent(out) :: first, count
    first = int(int(cells, int64) * part / parts)
    count = int(int(cells, int64) * (part + 1) / parts) - first
  end subroutine

  subroutine set_up()
    integer :: ranks, dims(2), coords(2), r, c, i, j
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    dims = 0
    call MPI_Dims_create(ranks, 2, dims)
    call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.false., .false.], .false., comm)
    call MPI_Comm_rank(comm, rank)
    call MPI_Cart_coords(comm, rank, 2, coords)
    call MPI_Cart_shift(comm, 0, 1, north, south)
    call MPI_Cart_shift(comm, 1, 1, west, east)
    call share(nx, dims(1), coords(1), row0, rows)
    call share(ny, dims(2), coords(2), col0, cols)
    allocate (now(0:rows + 1, 0:cols + 1), next(0:rows + 1, 0:cols + 1))
    now = 0
    next = 0
    do c = 1, cols
      do r = 1, rows
        i = row0 + r - 1
        j = col0 + c - 1
        now(r, c) = i * 0.25_real64 + j * 0.125_real64
        if (4*i > nx .and. 4*i < 3*nx .and. 4*j > ny .and. 4*j < 3*ny) now(r, c) = now(r, c) + 100
      end do
    end do
  end subroutine

  subroutine exchange_halo()
    real(real64) :: row_out(cols), row_in(cols)
    row_out = now(1, 1:cols)
    row_in = now(rows + 1, 1:cols)
    call MPI_Sendrecv(row_out, cols, MPI_DOUBLE_PRECISION, north, 0, row_in, cols, MPI_DOUBLE_PRECISION, south, 0, comm, &
                      MPI_STATUS_IGNORE)
    now(rows + 1, 1:cols) = row_in
    row_out = now(rows, 1:cols)
    row_in = now(0, 1:cols)
    call MPI_Sendrecv(row_out, cols, MPI_DOUBLE_PRECISION, south, 1, row_in, cols, MPI_DOUBLE_PRECISION, north, 1, comm, &
                      MPI_STATUS_IGNORE)
    now(0, 1:cols) = row_in
    call MPI_Sendrecv(now(1, 1), rows, MPI_DOUBLE_PRECISION, west, 2, now(1, cols + 1), rows, MPI_DOUBLE_PRECISION, east, 2, &
                      comm, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(now(1, cols), rows, MPI_DOUBLE_PRECISION, east, 3, now(1, 0), rows, MPI_DOUBLE_PRECISION, west, 3, &
                      comm, MPI_STATUS_IGNORE)
  end subroutine

  subroutine advance()
    integer :: r, c, i, j
    real(real64) :: laplace
    call exchange_halo()
    do c = 1, cols
      do r = 1, rows
        i = row0 + r - 1
        j = col0 + c - 1
        laplace = now(r, c - 1) + now(r, c + 1) + now(r - 1, c) + now(r + 1, c) - 4 * now(r, c)
        next(r, c) = now(r, c)
        if (i > 0 .and. j > 0 .and. i < nx - 1 .and. j < ny - 1) next(r, c) = now(r, c) + 0.2_real64 * laplace
      end do
    end do
    now(1:rows, 1:cols) = next(1:rows, 1:cols)
  end subroutine

  ! Frame `frame` of the file is this rank's block of the field: out (writing) or in.
  subroutine transfer_frame(file, frame, writing)
    type(MPI_File), intent(in) :: file
    integer(int64), intent(in) :: frame
    logical, intent(in) :: writing
    type(MPI_Datatype) :: in_file
    type(MPI_Status) :: status
    real(real64), allocatable :: block(:, :)
    integer(MPI_OFFSET_KIND) :: start
    integer :: moved, code
    call MPI_Type_create_subarray(2, [nx, ny], [rows, cols], [row0, col0], MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, in_file)
    call MPI_Type_commit(in_file)
    start = header_bytes + frame * int(nx, int64) * ny * 8
    call MPI_File_set_view(file, start, MPI_DOUBLE_PRECISION, in_file, 'native', MPI_INFO_NULL, code)
    call check(code, 'setting the view')
    allocate (block(rows, cols))
    if (writing) then
      block = now(1:rows, 1:cols)
      call MPI_File_write_all(file, block, rows * cols, MPI_DOUBLE_PRECISION, status, code)
      call check(code, 'writing a frame')
    else
      call MPI_File_read_all(file, block, rows * cols, MPI_DOUBLE_PRECISION, status, code)
      call check(code, 'reading a frame')
      now(1:rows, 1:cols) = block
    end if
    call MPI_Get_count(status, MPI_DOUBLE_PRECISION, moved)
    if (moved /= rows * cols) then
      write (error_unit, '(a, i0, a, i0)') 'heat: rank ', rank, ' moved only a part of frame ', frame
      call MPI_Abort(MPI_COMM_WORLD, 1)
    end if
    call MPI_Type_free(in_file)
  end subroutine

  subroutine write_header(file, every)
    type(MPI_File), intent(in) :: file
    integer, intent(in) :: every
    integer(int64) :: words(8)
    integer :: code
    if (rank /= 0) return
    words = 0
    words(1) = transfer('HEAT0001', words(1))
    words(2:4) = [int(nx, int64), int(ny, int64), int(every, int64)]
    call MPI_File_write_at(file, 0_MPI_OFFSET_KIND, words, 64, MPI_BYTE, MPI_STATUS_IGNORE, code)
    call check(code, 'writing the header')
  end subroutine

  ! Checks the header against the arguments; returns the number of frames in the file.
  integer(int64) function read_header(file, every) result(frames)
    type(MPI_File), intent(in) :: file
    integer, intent(in) :: every
    integer(int64) :: words(8)
    integer(MPI_OFFSET_KIND) :: bytes
    integer :: code
    call MPI_File_read_at_all(file, 0_MPI_OFFSET_KIND, words, 64, MPI_BYTE, MPI_STATUS_IGNORE, code)
    call check(code, 'reading the header')
    if (words(1) /= transfer('HEAT0001', words(1)) .or. any(words(2:4) /= [int(nx, int64), int(ny, int64), int(every, int64)])) then
      write (error_unit, '(a)') 'heat: the file was written with other settings'
      call MPI_Abort(MPI_COMM_WORLD, 1)
    end if
    call MPI_File_get_size(file, bytes, code)
    call check(code, 'asking for the size')
    frames = (bytes - header_bytes) / (int(nx, int64) * ny * 8)
  end function
end module

program heat
  use heat_field
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  interface
    integer(c_int) function usleep(microseconds) bind(c, name='usleep')
      import c_int
      integer(c_int), value :: microseconds
    end function
  end interface
  character(4096) :: output, word
  integer :: steps, every, pause_ms, i, s, mode, code
  integer(c_int) :: ignored
  integer(int64) :: frame
  logical :: restart
  type(MPI_File) :: file

  call MPI_Init()
  restart = .false.
  pause_ms = 0
  if (command_argument_count() < 5) then
    write (error_unit, '(a)') 'usage: heat OUTPUT NX NY STEPS EVERY [--restart] [--pause-ms N]'
    call MPI_Abort(MPI_COMM_WORLD, 2)
  end if
  call get_command_argument(1, output)
  nx = number(2)
  ny = number(3)
  steps = number(4)
  every = number(5)
  i = 6
  do while (i <= command_argument_count())
    call get_command_argument(i, word)
    if (word == '--restart') restart = .true.
    if (word == '--pause-ms') then
      i = i + 1
      pause_ms = number(i)
    end if
    i = i + 1
  end do
  call set_up()

  mode = MPI_MODE_RDWR
  if (.not. restart) mode = ior(mode, MPI_MODE_CREATE)
  call MPI_File_open(comm, trim(output), mode, MPI_INFO_NULL, file, code)
  call check(code, 'opening the output')
  if (restart) then
    frame = read_header(file, every) - 1
    call transfer_frame(file, frame, .false.)
  else
    frame = 0
    call write_header(file, every)
    call transfer_frame(file, frame, .true.)
  end if
  do s = 1, steps
    call advance()
    if (mod(s, every) /= 0) cycle
    frame = frame + 1
    call transfer_frame(file, frame, .true.)
    if (pause_ms > 0) ignored = usleep(int(pause_ms, c_int) * 1000)
  end do
  call MPI_File_close(file, code)
  call check(code, 'closing the output')
  if (rank == 0) print '(a, i0, 2a)', 'heat: ', frame + 1, ' frames in ', trim(output)
  call MPI_Comm_free(comm)
  call MPI_Finalize()
contains
  integer function number(position)
    integer, intent(in) :: position
    character(64) :: text
    call get_command_argument(position, text)
    read (text, *) number
  end function
end program
