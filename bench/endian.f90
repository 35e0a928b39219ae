! Writes real numbers in the byte order that the machine does not have:
!   endian swapped|apart FILE MEGABYTES
! swapped: the runtime converts (open with convert) on the way to the file; apart: it converts on the way to nowhere, and the file is
! written natively, which is what the conversion and large writes cost by themselves.
program endian
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  character(16) :: mode, text
  character(4096) :: path
  integer(int64) :: i, megabytes, begin, end, rate, record, words
  real(real64), allocatable :: values(:)

  call get_command_argument(1, mode)
  call get_command_argument(2, path)
  call get_command_argument(3, text)
  read (text, *) megabytes
  words = 8 * 131072_int64  ! 8 MiB a record
  allocate (values(words))
  values = [(real(i, real64) / 7, i = 1, words)]

  call system_clock(begin, rate)
  if (mode == 'swapped') then
    open (10, file=trim(path), form='unformatted', access='stream', status='replace', convert='big_endian')
    do record = 1, megabytes / 8
      write (10) values
    end do
  else
    open (10, file=trim(path), form='unformatted', access='stream', status='replace')
    open (11, file='/dev/null', form='unformatted', access='stream', convert='big_endian')
    do record = 1, megabytes / 8
      write (11) values
      write (10) values
    end do
  end if
  close (10)
  call system_clock(end)
  write (*, '(a, a, a, i0, a, f0.6, a)') '{"program": "endian", "mode": "', trim(mode), '", "ranks": 1, "bytes": ', &
    megabytes * 1048576, ', "seconds": 0', real(end - begin, real64) / real(rate, real64), &
    ', "open_seconds": 0, "close_seconds": 0, "cpu_seconds": 0, "verified": false, "peak_rss_bytes": 0}'

end program endian
