#: needs numpy
# Arrays: saved, mapped, appended, compressed.
import os, subprocess
import numpy as np
a = np.arange(100_000, dtype="f8")
np.save("a.dat.npy", a); os.rename("a.dat.npy", "a.dat"); print(np.array_equal(np.load("a.dat"), a), np.load("a.dat", mmap_mode="r")[500])
a.tofile("b.dat"); print(np.fromfile("b.dat", count=5, offset=800)); a.astype(">f4").tofile("c.dat")
with open("d.dat", "ab") as f:
    for i in range(5): a[i * 10:(i + 1) * 10].tofile(f); f.write(b"-")
np.savetxt("e.dat", a[:300].reshape(30, 10), fmt="%.3f"); print(np.loadtxt("e.dat").sum())
with open("f.dat", "wb") as f: np.save(f, a[:10]); np.save(f, a[:20])
with open("f.dat", "rb") as f: print(np.load(f).size, np.load(f).size)
m = np.memmap("b.dat", dtype="f8", mode="r"); print(m[-1], m[1000:1003]); del m
m = np.memmap("b.dat", dtype="f8", mode="c", shape=(50,)); m[0] = 7; print(m[0], np.fromfile("b.dat", count=1)); del m
subprocess.run(["cmp", "b.dat", "b.dat"], check=True)
