# Python's own files.
import gzip, json, os, pickle, random, shutil, shelve, sqlite3, dbm.dumb, tempfile, zipfile, mmap, io, csv, tarfile, threading
from concurrent.futures import ThreadPoolExecutor
rng = random.Random(5)
data = rng.randbytes(200_000)

with open("a.dat", "wb") as f:
    f.write(data); f.seek(1000); f.write(b"x" * 10); f.truncate(150_000); f.seek(0, 2); print(f.tell())
with open("a.dat", "r+b", buffering=0) as f:
    f.seek(-10, 2); print(f.read()[:3]); f.write(b"end"); print(f.tell(), os.fstat(f.fileno()).st_size)
with open("a.dat", "ab") as f:
    print(f.tell()); f.write(b"more"); print(f.tell())
try: open("a.dat", "xb")
except FileExistsError as e: print("exists", e.errno)
with open("b.dat", "w", encoding="utf-8") as f:
    for i in range(3000): print(i, "ä", file=f)
with open("b.dat") as f: print(sum(len(line) for line in f))
with open("c.dat", "w+") as f:
    f.write("hello"); f.seek(0); print(f.read()); f.seek(0); f.truncate(); print(f.read() == "")
with gzip.GzipFile("d.dat", "wb", mtime=0) as f: f.write(data)
print(gzip.open("d.dat").read() == data)
with zipfile.ZipFile("e.dat", "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr(zipfile.ZipInfo("in", (2000, 1, 1, 0, 0, 0)), data)
with zipfile.ZipFile("e.dat", "a") as z: z.writestr(zipfile.ZipInfo("second", (2000, 1, 1, 0, 0, 0)), b"2")
with zipfile.ZipFile("e.dat") as z: print(z.namelist(), z.read("in") == data, z.testzip())
pickle.dump({"a": list(range(1000))}, open("f.dat", "wb")); print(len(pickle.load(open("f.dat", "rb"))["a"]))
fd, name = tempfile.mkstemp(dir="."); os.write(fd, b"atomic"); os.fsync(fd); os.close(fd); os.replace(name, "g.dat"); print(open("g.dat").read())
for i in range(3):
    with open("h.tmp", "w") as f: f.write(f"state {i}\n"); f.flush(); os.fsync(f.fileno())
    os.replace("h.tmp", "h.dat")
print(open("h.dat").read())
shutil.copy("h.dat", "i.dat"); shutil.copy2("a.dat", "j.dat"); shutil.move("j.dat", "k.dat"); print(os.path.getsize("k.dat"))
with tempfile.NamedTemporaryFile(dir=".", suffix=".dat") as f: f.write(b"t"); f.flush(); print(os.path.getsize(f.name))
with tempfile.TemporaryDirectory(dir=".") as d:
    open(d + "/x.dat", "w").write("x"); print(open(d + "/x.dat").read())
fd = os.open("l.dat", os.O_RDWR | os.O_CREAT, 0o600); os.pwrite(fd, b"abc", 100); print(os.pread(fd, 200, 0)[98:], os.lseek(fd, 0, 1)); os.posix_fallocate(fd, 0, 500)
print(os.fstat(fd).st_size, os.writev(fd, [b"1", b"22"]), os.ftruncate(fd, 50)); os.close(fd)
def part(i):
    with open("m.dat", "r+b") as f: f.seek(i * 1000); f.write(bytes([i]) * 1000)
open("m.dat", "wb").close()
with ThreadPoolExecutor(8) as pool: list(pool.map(part, range(64)))
print(all(open("m.dat", "rb").read()[i * 1000:(i + 1) * 1000] == bytes([i]) * 1000 for i in range(64)))
with open("n.dat", "w", newline="") as f: csv.writer(f).writerows([[i, i * i] for i in range(100)])
json.dump(list(range(100)), open("o.dat", "w")); print(len(json.load(open("o.dat"))))
with open("p.dat", "wb") as f, os.fdopen(os.dup(f.fileno()), "wb") as g: g.write(b"dup"); g.flush(); f.write(b"orig")
print(open("p.dat", "rb").read())
with open("a.dat", "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m: print(m[1000:1010], len(m), m.find(b"end"))
with open("a.dat", "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY) as m: m[0:3] = b"own"; print(m[:3])
os.rename("o.dat", "q.dat"); os.remove("p.dat"); print(sorted(n for n in os.listdir(".") if n.endswith(".dat") and not n.startswith(".")))
print(os.access("q.dat", os.W_OK), os.path.isfile("q.dat"), os.path.islink("g.dat"), os.stat("q.dat").st_nlink)
big = open("r.dat", "wb"); big.seek(5 << 30); big.write(b"far"); big.close(); print(os.path.getsize("r.dat")); f = open("r.dat", "rb"); f.seek(-5, 2); print(f.read()); f.close(); os.remove("r.dat")
