"""Fields of an array by mpi4py: fields.py FILE [h5]. Each step all ranks write their rows, by MPI-IO with a view, or by h5py with its MPI driver."""
import sys
import time

from mpi4py import MPI

STEPS, ROWS, COLUMNS = 12, 6, 500
world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()


def row(step, number):
    return bytes((step * 31 + number * 7 + i) % 251 for i in range(COLUMNS))


def by_mpi_io(path):
    file = MPI.File.Open(world, path, MPI.MODE_CREATE | MPI.MODE_WRONLY)
    rows = MPI.BYTE.Create_vector(ROWS, COLUMNS, COLUMNS * ranks).Commit()
    for step in range(STEPS):
        file.Set_view(step * ROWS * ranks * COLUMNS + rank * COLUMNS, MPI.BYTE, rows)
        file.Write_all(bytearray(b"".join(row(step, number * ranks + rank) for number in range(ROWS))))
        most = world.allreduce(step * rank, op=MPI.MAX)
        assert most == step * (ranks - 1)
        time.sleep(0.15)
    file.Close()


def by_hdf5(path):
    import h5py
    import numpy
    with h5py.File(path, "w", driver="mpio", comm=world) as file:
        for step in range(STEPS):
            data = file.create_dataset(f"step{step:02}", (ROWS * ranks, COLUMNS), dtype="u1", track_times=False)
            for number in range(ROWS):
                data[number * ranks + rank] = numpy.frombuffer(row(step, number * ranks + rank), dtype="u1")
            world.Barrier()
            time.sleep(0.15)


by_hdf5(sys.argv[1]) if sys.argv[2:] == ["h5"] else by_mpi_io(sys.argv[1])
