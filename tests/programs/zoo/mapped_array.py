#: needs numpy
#: refused mirror rs mirror-buffer rs-buffer rs-lost
# An array that is written through a shared mapping: what no protected file can serve.
import numpy as np
m = np.memmap("a.dat", dtype="f8", mode="w+", shape=(1000,)); m[:] = 3; m.flush(); del m
print(np.fromfile("a.dat").sum())
