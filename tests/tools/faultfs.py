"""A mount of the pass-through that fails on request (faultfs.c), for tests; whoever makes one ends it."""
import os
import subprocess
import time


class Mount:
    """`path` shows what lies in `backing`; both are made in `scratch`, and so is the control file. `of`: another mount of what that one shows."""

    def __init__(self, program, scratch, name, *options, of=None):
        self.backing, self.path = of.backing if of else os.path.join(scratch, "backing"), os.path.join(scratch, name)
        self.control = os.path.join(scratch, "control." + name if of else "control")
        if not of:
            os.mkdir(self.backing)
        os.mkdir(self.path)
        self.server = subprocess.Popen([program, self.backing, self.path, "--control", self.control, "-f", *options],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(500):
            if os.path.ismount(self.path) or self.server.poll() is not None:
                break
            time.sleep(0.01)

    def works(self):
        return self.server.poll() is None

    def order(self, rules):
        with open(self.control + ".new", "w", encoding="utf-8") as file:
            file.write(rules + "\n")
        os.rename(self.control + ".new", self.control)

    def end(self):
        self.order("")
        if self.server.poll() is None:
            self.server.terminate()
            try:
                self.server.wait(5)
            except subprocess.TimeoutExpired:
                self.server.kill()
                self.server.wait()
        subprocess.run(["fusermount3", "-u", "-z", self.path], stderr=subprocess.DEVNULL, check=False)
