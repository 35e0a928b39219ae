# Children, pools, and output that is led to files.
import asyncio, multiprocessing, os, subprocess, sys, signal, time
with open("a.dat", "w") as f:
    f.write("before\n"); f.flush()
    subprocess.run(["echo", "child"], stdout=f, check=True); f.seek(0, 2); f.write("after\n")
print(open("a.dat").read())
with open("b.dat", "wb") as f: subprocess.run("echo out; echo err >&2; ls nothing-here", shell=True, stdout=f, stderr=subprocess.STDOUT)
print(open("b.dat").read())
with open("b.dat") as f: print(subprocess.run(["wc", "-l"], stdin=f, capture_output=True).stdout)
def work(i):
    with open(f"part{i}.dat", "w") as f: f.write(str(i) * 1000)
    return os.path.getsize(f"part{i}.dat")
with multiprocessing.get_context("fork").Pool(3) as p: print(p.map(work, range(6)))
f = open("c.dat", "wb", buffering=0); f.write(b"P")
pid = os.fork()
if pid == 0:
    f.write(b"C"); os._exit(0)
os.waitpid(pid, 0); f.write(b"p"); f.close(); print(open("c.dat", "rb").read())
f = open("d.dat", "ab", buffering=0)
for i in range(4):
    pid = os.fork()
    if pid == 0:
        for j in range(20): f.write(b"%d" % i * 9 + b"\n")
        os._exit(0)
    os.waitpid(pid, 0)
f.close(); print(len(open("d.dat", "rb").read()))
fd = os.open("e.dat", os.O_RDWR | os.O_CREAT)
pids = []
for i in range(3):
    pids.append(os.fork())
    if pids[-1] == 0:
        os.pwrite(fd, bytes([65 + i]) * 100_000, i * 100_000); os._exit(0)
for pid in pids: os.waitpid(pid, 0)
os.close(fd); data = open("e.dat", "rb").read(); print(len(data), [data.count(bytes([65 + i])) for i in range(3)])
async def main():
    p = await asyncio.create_subprocess_exec("echo", "async", stdout=open("f.dat", "w")); await p.wait()
    await asyncio.gather(*[asyncio.to_thread(work, i) for i in range(10, 16)])
asyncio.run(main()); print(open("f.dat").read())
p = subprocess.Popen([sys.executable, "-c", "import time,sys; f=open('g.dat','w'); f.write('x'*10); f.flush(); print('up', flush=True); time.sleep(60)"], stdout=subprocess.PIPE)
p.stdout.readline(); p.terminate(); print(p.wait(), open("g.dat").read())
p = subprocess.Popen([sys.executable, "-c", "import time,os; f=open('h.dat','w'); f.write('y'*10); f.flush(); os.fsync(f.fileno()); print('up', flush=True); time.sleep(60)"], stdout=subprocess.PIPE)
p.stdout.readline(); p.kill(); print(p.wait(), open("h.dat").read())
p = subprocess.Popen([sys.executable, "-c", "import signal,sys,os,time\nf=open('i.dat','w')\nsignal.signal(15, lambda *a: (f.write('told\\n'), f.close(), sys.exit(3)))\nf.write('begun\\n'); print('up', flush=True); time.sleep(60)"], stdout=subprocess.PIPE)
p.stdout.readline(); p.terminate(); print(p.wait(), open("i.dat").read())
saved = os.dup(1); out = os.open("j.dat", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644); os.dup2(out, 1); os.close(out)
print("into the file", flush=True); os.system("echo from the child"); os.dup2(saved, 1); print(open("j.dat").read())
