! Every kind of unit that a Fortran program writes.
program fortran_units
  implicit none
  integer :: i, n, unit, status
  real(8) :: x(1000), y(1000)
  character(80) :: line
  logical :: there
  integer(8) :: bytes
  namelist /setup/ n, i, line
  x = [(sqrt(real(i, 8)), i = 1, 1000)]
  open(10, file='seq.dat', form='formatted', status='replace')
  do i = 1, 500
    write(10, '(i6,f12.5)') i, x(i)
  end do
  rewind(10); read(10, *) n, y(1); print *, n
  backspace(10); read(10, '(a)') line; print '(a)', trim(line)
  do i = 1, 10; read(10, *); end do
  write(10, '(a)') 'cut here'; endfile(10); close(10)
  open(10, file='seq.dat', position='append'); write(10, '(a)') 'appended'
  inquire(10, size=bytes); print *, bytes; close(10)
  open(11, file='unf.dat', form='unformatted'); write(11) x; write(11) x(1:10), 'text'
  rewind(11); read(11) y; print *, all(x == y); close(11)
  open(12, file='big.dat', form='unformatted', convert='big_endian'); do i = 1, 50; write(12) x; end do; close(12)
  open(12, file='big.dat', form='unformatted', convert='big_endian', status='old'); read(12)
  read(12) y; print *, all(x == y); close(12)
  open(13, file='direct.dat', access='direct', recl=800, form='unformatted')
  do i = 20, 1, -1; write(13, rec=i) x(i:i+99); end do
  read(13, rec=7) y(1:100); print *, all(y(1:100) == x(7:106)); inquire(13, nextrec=n); print *, n; close(13)
  open(14, file='stream.dat', access='stream', form='unformatted', status='new')
  write(14) x(1:100); write(14, pos=5001) 'far'; inquire(14, pos=n); print *, n
  read(14, pos=9) y(1); print *, y(1) == x(2); flush(14); close(14)
  open(15, file='list.dat'); n = 3; i = 4; line = 'hello'; write(15, nml=setup)
  rewind(15); n = 0; read(15, nml=setup); print *, n; close(15)
  open(newunit=unit, file='seq.dat', status='new', iostat=status); print *, status /= 0
  inquire(file='seq.dat', exist=there); print *, there; inquire(file='none.dat', exist=there); print *, there
  open(newunit=unit, file='gone.dat'); write(unit, *) 1
  close(unit, status='delete'); inquire(file='gone.dat', exist=there); print *, there
  open(newunit=unit, file='empty.dat'); close(unit)
  open(newunit=unit, file='async.dat', asynchronous='yes', form='unformatted', access='stream'); write(unit, asynchronous='yes') x
  wait(unit); close(unit)
  open(newunit=unit, file='ftell.dat', form='formatted', access='stream'); write(unit, '(a)') 'abc'; call fseek(unit, 0, 0)
  read(unit, '(a)') line; print *, trim(line); close(unit)
  open(6, file='stdout.dat'); print *, 'printed into a file'; close(6)
  open(20, file='never.dat'); write(20, *) 'never closed'
end program
