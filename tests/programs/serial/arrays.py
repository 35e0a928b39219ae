"""Python's own files, os, mmap, and numpy's."""
import io
import mmap
import os
import pickle
import shutil
import subprocess
import sys
import time

import numpy

prefix = sys.argv[1]


def half_way():
    flag = os.environ.get("PAUSE")
    if flag:
        flag += ".pause"
        os.close(os.open(flag, os.O_CREAT | os.O_WRONLY))
        while os.path.exists(flag):
            time.sleep(0.01)


with open(prefix + ".text", "w") as out:
    for i in range(20000):
        print(i, i / 7, file=out)
    half_way()
    out.write("the end\n")
assert sum(1 for _ in open(prefix + ".text")) == 20001
with open(prefix + ".text", "r+") as both:
    both.seek(0, io.SEEK_END)
    assert both.tell() == os.path.getsize(prefix + ".text")
    both.truncate(100000)
with open(prefix + ".binary", "wb", buffering=0) as out:
    for i in range(100):
        out.write(bytes([i]) * (i * 50))
    os.pwrite(out.fileno(), b"here", 5000)
    os.fsync(out.fileno())
    assert os.fstat(out.fileno()).st_size == os.stat(prefix + ".binary").st_size == 247500
with open(prefix + ".binary", "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as pages:
    assert pages[5000:5004] == b"here" and len(pages) == 247500
with open(prefix + ".binary", "rb") as f:
    assert hash(f.read()) is not None and f.seekable() and not f.isatty()

array = numpy.arange(60000, dtype="f8").reshape(200, 300)
array.tofile(prefix + ".raw")
assert (numpy.fromfile(prefix + ".raw") == array.ravel()).all()
numpy.save(prefix + ".npy", array)
assert (numpy.load(prefix + ".npy") == array).all()
assert (numpy.load(prefix + ".npy", mmap_mode="r") == array).all()
numpy.savetxt(prefix + ".columns", array[:50, :5])
assert numpy.allclose(numpy.loadtxt(prefix + ".columns"), array[:50, :5])
with open(prefix + ".pickle", "wb") as out:
    pickle.dump({"array": array}, out)
assert (pickle.load(open(prefix + ".pickle", "rb"))["array"] == array).all()

shutil.copyfile(prefix + ".raw", prefix + ".copied")
shutil.copy2(prefix + ".npy", prefix + ".copied_with_times")
os.replace(prefix + ".copied", prefix + ".moved")
assert not os.path.exists(prefix + ".copied")
with open(prefix + ".child", "wb") as out:
    out.write(b"from the parent; ")
    out.flush()
    subprocess.run([sys.executable, "-c", f"import os; os.write({out.fileno()}, b'from the child; ')"], check=True,
                   pass_fds=[out.fileno()])
    out.write(b"from the parent again")
assert open(prefix + ".child").read() == "from the parent; from the child; from the parent again"
left_open = open(prefix + ".left_open", "w")
left_open.write("x" * 30000)
