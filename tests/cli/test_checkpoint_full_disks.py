"""A program that finds its node's disk full and closes the file all the same: what is there is none of a checkpoint."""
import os
import re
import subprocess
import textwrap
import unittest

from checkpoint_test import CheckpointTest

SMALL = {"nodes": 3, "scheme": "rs:2+1"}
ROOM = 4 << 20
# Nobody looks at what the calls answer. What is not closed by hand is written at the end of the process.
PROGRAM = r"""
    #include <fcntl.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/uio.h>
    #include <unistd.h>
    static char much[8 << 20], odd[8 << 20];
    int main(int count, char **words) {
      const char *way = words[1], *path = words[2];
      memset(much, 'x', sizeof much);
      if (!strncmp(way, "stream", 6)) {
        FILE *out = fopen(path, "w");
        if (!strcmp(way, "stream-flush")) setvbuf(out, odd, _IOFBF, sizeof odd);
        if (!strcmp(way, "stream-text")) for (int i = 0; i < 8 << 14; ++i) fprintf(out, "%63d\n", i);
        else if (!strcmp(way, "stream-characters")) for (int i = 0; i < 8 << 20; ++i) putc_unlocked('x', out);
        else fwrite(much, 1, sizeof much, out);
        if (!strcmp(way, "stream-reopened")) out = freopen("/dev/null", "w", out);
        /* Whoever looks at the answer of the close is told, as natively. */
        if (!strcmp(way, "stream-closed")) return setvbuf(out, odd, _IOFBF, sizeof odd), fwrite(much, 1, 5 << 20, out), fclose(out) == EOF ? 77 : 0;
        if (strcmp(way, "stream-at-exit")) fclose(out);
        return 0;
      }
      int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
      struct iovec pieces[] = {{much, 4096}, {much, sizeof much}};
      if (!strcmp(way, "write")) (void)!write(fd, much, sizeof much);
      if (!strcmp(way, "writev")) (void)!writev(fd, pieces, 2);
      if (!strcmp(way, "pwrite")) for (int i = 0; i < 8; ++i) (void)!pwrite(fd, much, 1 << 20, i << 20);
      if (!strcmp(way, "dprintf")) for (int i = 0; i < 8 << 14; ++i) dprintf(fd, "%63d\n", i);
      if (!strcmp(way, "sized")) (void)!pwrite(fd, much, sizeof much, 0), (void)!ftruncate(fd, sizeof much);
      if (!strcmp(way, "child")) {
        if (fork() == 0) (void)!write(fd, much, sizeof much), _exit(0);
        sleep(1);
      }
      if (!strcmp(way, "truncated")) {
        (void)!write(fd, much, sizeof much);
        (void)!ftruncate(fd, 0);
        (void)!pwrite(fd, much, 1000, 0);
      }
      close(fd);
      return 0;
    }
"""
# Most often there was no room to say more.
WHY = r"(its node's disk is full, or cannot be written|the program could not write all of it: No space left on device)"


class FullDisks(CheckpointTest):
    def setUp(self):
        super().setUp()
        with open(self.path("full.c"), "w") as source:
            source.write(textwrap.dedent(PROGRAM))
        subprocess.run(["gcc", "-w", "-O1", "-o", self.path("full"), self.path("full.c")], check=True)

    def run_on_full_disk(self, write, **how):
        self.small_disk("n1", ROOM)
        script = f"echo one > ck/ck.1.0; {self.until('1 *whole')}; {write}; ls ck > seen"
        return self.run_job(script, "--drain", "none", **SMALL, **how)

    def check_refused(self, said):
        """It is said once and for all, and the next attempt begins with what is whole."""
        self.assertEqual(len(re.findall("ck/ck.2.0 is not protected: " + WHY, said.stderr)), 1, said.stderr)
        self.assertEqual(self.states(), {1: "whole", 2: "failed"})
        self.assertRegex(self.holdfast("checkpoints").stdout, WHY)
        self.run_job("ls ck > seen", "--drain", "none", "--resume", **SMALL)
        self.assertEqual(self.read("seen"), "ck.1.0\n")

    def test_a_command_that_writes_to_it(self):
        self.check_refused(self.run_on_full_disk("head -c 8000000 /dev/zero > ck/ck.2.0", expect=123))

    def test_though_the_nodes_directory_is_reached_by_a_link(self):
        os.mkdir(self.path("scratch"))
        os.symlink("scratch", self.path("holdfast-nodes"))
        self.check_refused(self.run_on_full_disk("head -c 8000000 /dev/zero > ck/ck.2.0", expect=123))

    def test_what_is_renamed_later(self):
        """Its disk has room again by then, and it has no more of what the program meant."""
        self.small_disk("n1", ROOM)
        self.run_job("echo one > ck/ck.1.0; " + self.until("1 *whole") + """
            head -c 3000000 /dev/zero > holdfast-nodes/n1/beside; ./full write ck/ck.3.0; rm holdfast-nodes/n1/beside
            mv ck/ck.3.0 ck/ck.2.0""", "--drain", "none", expect=123, **SMALL)
        self.assertEqual({step: self.states().get(step) for step in (1, 2)}, {1: "whole", 2: "failed"})

    def test_a_program_is_told_of_it_at_the_close(self):
        self.check_refused(self.run_on_full_disk("./full stream-closed ck/ck.2.0; [ $? = 77 ] || echo untold >> wrong", expect=123))
        self.assertFalse(os.path.exists(self.path("wrong")))

    def test_what_another_run_of_the_program_writes_anew(self):
        self.run_on_full_disk("head -c 3000000 /dev/zero > holdfast-nodes/n1/beside; dd if=/dev/zero of=ck/ck.2.0 bs=1M count=8; rm holdfast-nodes/n1/beside; "
                              "dd if=/dev/zero of=ck/ck.2.0 bs=1000 count=1", expect=(0, 123))
        self.assertEqual(self.standings()[2]["bytes"], 1000)
        self.assertEqual(self.states()[2], "whole")

    def test_what_is_written_anew_after_all(self):
        self.run_on_full_disk("./full truncated ck/ck.2.0")
        self.assertEqual(self.states(), {1: "superseded", 2: "whole"})
        self.assertEqual(self.standings()[2]["bytes"], 1000)


def add(name, write):
    setattr(FullDisks, "test_" + name, lambda self: self.check_refused(self.run_on_full_disk(write, expect=123)))


for _way in ("write", "writev", "pwrite", "child", "stream", "stream-flush", "stream-text", "stream-characters", "stream-at-exit", "stream-reopened", "dprintf", "sized"):
    add("by_" + _way.replace("-", "_"), f"./full {_way} ck/ck.2.0")
add("cp", "head -c 8000000 /dev/zero > much; cp much ck/ck.2.0")
add("dd", "dd if=/dev/zero of=ck/ck.2.0 bs=1M count=8")
add("the_end_of_a_script", "exec > ck/ck.2.0; head -c 8000000 /dev/zero; exec > /dev/null")

if __name__ == "__main__":
    unittest.main()
