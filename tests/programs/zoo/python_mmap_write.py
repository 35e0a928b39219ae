#: ways nothing buffer
# Shared mappings that are written, beside calls.
import mmap, os
with open("a.dat", "w+b") as f:
    f.truncate(100_000); f.write(b"head")
    f.flush()
    with mmap.mmap(f.fileno(), 0) as m:
        print(m[:4]); m[50_000:50_005] = b"inmap"; f.seek(50_000); print(f.read(5))
        f.seek(10); f.write(b"call"); f.flush(); print(m[10:14]); m.flush()
    f.seek(0); print(f.read(14))
with open("a.dat", "r+b") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m:
    f.seek(20); f.write(b"seen"); f.flush(); print(m[20:24])
