#: needs gfortran fortran_units
fortran_units; echo $?; cat stdout.dat never.dat
