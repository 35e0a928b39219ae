! Large records in the other byte order: converted DIRECTORY
program converted
  implicit none
  real(8), allocatable :: field(:)
  character(len=4096) :: directory
  integer :: step
  call get_command_argument(1, directory)
  allocate(field(250000))
  field = 1.5d0
  open(10, file=trim(directory)//'/fields.dat', form='unformatted', access='sequential', status='replace')
  do step = 1, 6
    write(10) field
  end do
  close(10)
end program converted
