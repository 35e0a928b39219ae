"""MPI-IO through mpi4py: views, collective and nonblocking calls, and the temporary-file pattern of mpi4py's own tests:
tempfile makes an empty file, MPI-IO opens and fills it.

  python views.py PREFIX [--pause FILE]
"""
import array
import os
import sys
import tempfile
import time

from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK, RANKS = COMM.rank, COMM.size
PREFIX = sys.argv[1]
failures = 0


def check(fact, what):
    global failures
    if not fact:
        failures += 1
        print(f"FAIL python: {what}, rank {RANK}", flush=True)


def middle():
    COMM.Barrier()
    if "--pause" in sys.argv:
        flag = sys.argv[sys.argv.index("--pause") + 1]
        if RANK == 0:
            open(flag, "w").close()
            for _ in range(6000):
                if not os.path.exists(flag):
                    break
                time.sleep(0.01)
        COMM.Barrier()


def strided_view():
    file = MPI.File.Open(COMM, PREFIX + ".strided", MPI.MODE_CREATE | MPI.MODE_RDWR)
    filetype = MPI.INT.Create_vector(100, 7, 7 * RANKS).Commit()
    file.Set_view(RANK * 28, MPI.INT, filetype)
    data = array.array("i", range(RANK * 10000, RANK * 10000 + 700))
    file.Write_all(data)
    middle()
    back = array.array("i", [0] * 700)
    file.Read_at_all(0, back)
    check(back == data, "a strided view came back changed")
    status = MPI.Status()
    file.Iread_at(7, [back, 693, MPI.INT]).Wait(status)
    check(status.Get_count(MPI.INT) == 693 and back[:693] == data[7:], "a nonblocking read came back changed")
    check(file.Get_size() > 0 and file.amode == MPI.MODE_CREATE | MPI.MODE_RDWR, "size or amode")
    filetype.Free()
    file.Close()


def temporary_file():
    name = None
    if RANK == 0:
        descriptor, name = tempfile.mkstemp(prefix=os.path.basename(PREFIX) + ".tmp-", dir=os.path.dirname(PREFIX))
        os.close(descriptor)
    name = COMM.bcast(name)
    file = MPI.File.Open(COMM, name, MPI.MODE_RDWR | MPI.MODE_CREATE | MPI.MODE_DELETE_ON_CLOSE)
    data = bytearray(os.urandom(1)[0] for _ in range(5000))
    file.Write_at_all(RANK * 5000, data)
    file.Sync()
    COMM.Barrier()
    back = bytearray(5000)
    file.Read_at_all(RANK * 5000, back)
    check(back == data, "a temporary file came back changed")
    file.Close()
    COMM.Barrier()
    check(not os.path.exists(name), "the temporary file is still there")


def empty_file_is_filled():
    if RANK == 0:
        open(PREFIX + ".found_empty", "w").close()
    COMM.Barrier()
    file = MPI.File.Open(COMM, PREFIX + ".found_empty", MPI.MODE_RDWR)
    file.Write_ordered(bytes([65 + RANK]) * 100000)
    file.Close()


def errors_become_exceptions():
    try:
        MPI.File.Open(COMM, PREFIX + ".absent", MPI.MODE_RDONLY)
        check(False, "opened a file that is not there")
    except MPI.Exception as error:
        check(error.Get_error_class() == MPI.ERR_NO_SUCH_FILE, f"error class {error.Get_error_class()}")


strided_view()
temporary_file()
empty_file_is_filled()
errors_become_exceptions()
total = COMM.allreduce(failures)
if RANK == 0:
    print(f"views.py: {total} failures")
sys.exit(1 if total else 0)
