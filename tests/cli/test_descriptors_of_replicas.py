"""holdfast run --replicas: descriptors above 2 that the command is started with lead to one open file for all teams."""
import os
import subprocess
import sys
import unittest

from replicated import ReplicatedTest

# What it can read from 3, or the error of that; then the error of a write.
USES = """import os
said = b''
try:
    while piece := os.read(3, 1000):
        said += piece
except OSError as error:
    said += b'read: ' + os.strerror(error.errno).encode()
try:
    os.write(3, b'a record')
except OSError as error:
    said += b'; write: ' + os.strerror(error.errno).encode()
with open('said', 'wb') as file:
    file.write(said)
"""
NOT_THERE = "read: Bad file descriptor; write: Bad file descriptor"


class DescriptorsOfReplicas(ReplicatedTest):
    def use(self, name, flags, at=0, options=()):
        """The program has that file as its descriptor 3, from there on: what is said of it on standard error."""
        fd = os.open(name, flags, 0o644)
        os.lseek(fd, at, os.SEEK_SET)
        return self.use_open(fd, options)

    def use_open(self, fd, options=()):
        def begin():
            os.dup2(fd, 3)
            os.set_inheritable(3, True)

        try:
            done = subprocess.run([self.binary, "run", "--replicas", "2", *options, sys.executable, "-c", USES], cwd=self.dir, env=self.env, check=False,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, pass_fds=[3], preexec_fn=begin)
        finally:
            os.close(fd)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def assert_named(self, said, name):
        self.assertEqual(said.count(f"the replicas do not get descriptor 3 ({name}), for each of them would use it: let the program open"), 1, said)
        self.assertEqual(self.read("said"), NOT_THERE, said)

    def test_what_is_open_to_write_is_named_and_not_written_by_each_team(self):
        for flags in (os.O_WRONLY | os.O_CREAT, os.O_RDWR, os.O_WRONLY | os.O_APPEND):
            with self.subTest(flags=flags):
                self.assert_named(self.use(self.path("file"), flags), self.path("file"))
                self.assertEqual(self.read("file"), "")

    def test_a_pipe_is_named_and_not_dealt_out_to_the_teams(self):
        read_end, write_end = os.pipe()
        os.write(write_end, b"what one of them would get")
        os.close(write_end)
        name = os.readlink(f"/proc/self/fd/{read_end}")
        self.assert_named(self.use_open(read_end), name)

    def test_a_plain_file_to_be_read_is_read_by_each_team_from_where_it_was(self):
        text = "".join(f"line {i}\n" for i in range(2000))
        with open(self.path("input"), "w", encoding="utf-8") as file:
            file.write(text)
        said = self.use(self.path("input"), os.O_RDONLY, at=14)
        self.assertEqual(self.read("said"), text[14:] + "; write: Bad file descriptor", said)
        self.assertNotIn("do not get descriptor", said)

    def test_devices_of_nobody_are_handed_on(self):
        said = self.use("/dev/null", os.O_RDWR)
        self.assertEqual(self.read("said"), "", said)
        self.assertNotIn("do not get descriptor", said)


if __name__ == "__main__":
    unittest.main()
