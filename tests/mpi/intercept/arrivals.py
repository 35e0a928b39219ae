"""The same program through mpi4py."""
import sys

from mpi4py import MPI

file = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
status = MPI.Status()
file.Write_at(0, b"0123456789", status)
file.Iwrite_at(10, b"0123456789").Wait()
file.Close()
print("wrote", status.Get_count(MPI.BYTE))
