! A Fortran runtime's files: formatted, unformatted sequential (with record marks), stream and direct access, append, rewind, backspace.
program units
  use, intrinsic :: iso_fortran_env
  implicit none
  character(len=1000) :: prefix, flag
  integer :: i, unit, status, n
  real(real64) :: values(5000), back(5000), one
  logical :: there

  call get_command_argument(1, prefix)
  do i = 1, size(values)
    values(i) = i * 0.25d0
  end do

  open(newunit=unit, file=trim(prefix)//'.formatted', status='replace', action='readwrite')
  do i = 1, 10000
    write(unit, '(i8,f14.4,a)') i, i / 3.0d0, ' a line'
  end do
  call half_way()
  rewind(unit)
  read(unit, '(i8,f14.4)') n, one
  if (n /= 1) error stop 'formatted'
  close(unit)

  open(newunit=unit, file=trim(prefix)//'.formatted', status='old', position='append', action='write')
  write(unit, '(a)') 'appended'
  close(unit)

  open(newunit=unit, file=trim(prefix)//'.sequential', form='unformatted', status='replace')
  do i = 1, 40
    write(unit) values * i
  end do
  backspace(unit)
  read(unit) back
  if (any(back /= values * 40)) error stop 'sequential'
  rewind(unit)
  read(unit) back
  if (any(back /= values)) error stop 'sequential after rewind'
  close(unit)

  open(newunit=unit, file=trim(prefix)//'.swapped', form='unformatted', status='replace', convert='big_endian')
  do i = 1, 10
    write(unit) values
  end do
  close(unit)

  open(newunit=unit, file=trim(prefix)//'.stream', form='unformatted', access='stream', status='replace')
  write(unit) values
  write(unit, pos=1001) 42_int32
  read(unit, pos=1001) n
  if (n /= 42) error stop 'stream'
  flush(unit)
  inquire(unit=unit, size=n)
  if (n /= 40000) error stop 'size'
  close(unit)

  open(newunit=unit, file=trim(prefix)//'.direct', form='unformatted', access='direct', recl=40000, status='replace')
  do i = 20, 1, -1
    write(unit, rec=i) values + i
  end do
  read(unit, rec=7) back
  if (any(back /= values + 7)) error stop 'direct'
  close(unit)

  open(newunit=unit, file=trim(prefix)//'.gone', status='replace')
  write(unit, *) 'x'
  close(unit, status='delete')
  inquire(file=trim(prefix)//'.gone', exist=there)
  if (there) error stop 'a deleted file is there'

contains

  subroutine half_way()
    call get_environment_variable('PAUSE', flag, status=status)
    if (status /= 0) return
    open(newunit=n, file=trim(flag)//'.pause', status='replace')
    close(n)
    do
      inquire(file=trim(flag)//'.pause', exist=there)
      if (.not. there) exit
      call sleep(1)
    end do
  end subroutine
end program
