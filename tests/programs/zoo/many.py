#: ways nothing buffer rs
# Many small files, and one with a hole of gigabytes.
import os
for i in range(400):
    with open(f"{i}.dat", "w") as f: f.write(str(i))
print(sum(int(open(f"{i}.dat").read()) for i in range(400)), sum(os.path.getsize(f"{i}.dat") for i in range(400)))
for i in range(390): os.remove(f"{i}.dat")
with open("big.dat", "wb") as f:
    f.seek(6 << 30); f.write(b"end"); f.seek(3 << 30); f.write(b"middle")
with open("big.dat", "rb") as f:
    f.seek(3 << 30); print(f.read(8)); f.seek(-4, 2); print(f.read(), os.path.getsize("big.dat")); f.seek(1 << 32); print(f.read(3))
os.truncate("big.dat", 5 << 30); print(os.path.getsize("big.dat")); os.remove("big.dat"); print(sorted(os.listdir(".")))
