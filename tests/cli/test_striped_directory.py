"""Files in one directory of a file system that stripes and says where: a pass-through that behaves like a Lustre (tests/tools/faultfs.c)."""
import os
import struct
import sys
import unittest

from command import CommandTest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
import faultfs

FAULTFS = os.environ.get("HOLDFAST_FAULTFS") or os.path.join(os.path.dirname(__file__), "../../build/bin/faultfs")
UNIT = 65536


def nodes_of(path):
    """The file's storage nodes, from outside: lov_user_md_v1."""
    blob = os.getxattr(path, "lustre.lov")
    magic, _, unit, count = struct.unpack_from("<II16xIH", blob)
    assert magic == 0x0BD10BD0
    return unit, [struct.unpack_from("<I", blob, 32 + 24 * i + 20)[0] for i in range(count)]


@unittest.skipUnless(os.path.exists(FAULTFS) and os.path.exists("/dev/fuse"), "no FUSE here")
class StripedDirectory(CommandTest):
    def setUp(self):
        super().setUp()
        self.env["HOLDFAST_STRIPING_UNIT"] = str(UNIT)
        self.env["HOLDFAST_DEADLINE"] = "2s"

    def mount(self, *options):
        mount = faultfs.Mount(FAULTFS, self.dir, "lustre", *options)
        self.here, self.order = mount.path, mount.order
        self.addCleanup(mount.end)
        if not mount.works():
            self.skipTest("faultfs cannot mount here")

    def lose(self, *nodes):
        self.order("\n".join(f"{call} errno EIO ost={node}" for node in nodes for call in ("read", "write")))

    def protect_here(self, scheme, *options, name="out.dat"):
        content = self.make_file("plain.dat")
        self.holdfast("import", "plain.dat", os.path.join("lustre", name), "--protect", scheme, *options)
        return content, os.path.join(self.here, name)

    def redundancy(self, path, number):
        return os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.holdfast", f"redundancy{number}")

    def record(self, path, member, what):
        return os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.holdfast", f"m{member}.{what}")

    def layout_is_as_asked(self, path, k, m, start, nodes):
        unit, data = nodes_of(path)
        self.assertEqual((unit, data), (UNIT, [(start + i) % nodes for i in range(k)]))
        for j in range(m):
            self.assertEqual(nodes_of(self.redundancy(path, j))[1], [(start + k + j) % nodes])
        for member in range(k + m):
            for what in ("sums", "manifest"):
                self.assertEqual(nodes_of(self.record(path, member, what))[1], [(start + member) % nodes], (member, what))

    def test_each_unit_lies_on_a_node_of_its_own_wherever_the_first_is(self):
        self.mount("--osts=7")
        for number, (scheme, k, m, start) in enumerate((("rs:4+2", 4, 2, 0), ("rs:4+2", 4, 2, 5), ("mirror:3", 1, 2, 3),
                                                        ("mirror:3", 1, 2, 5), ("rs:5+2", 5, 2, 6))):
            name = f"out{number}"
            self.env["HOLDFAST_START_IODEVICE"] = str(start)
            content, path = self.protect_here(scheme, "--placement", "separate", name=name)
            self.layout_is_as_asked(path, k, m, start, 7)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), content)  # the plain file
            self.assertEqual(self.cat(f"lustre/{name}"), content)

    def test_where_no_start_is_named_the_file_system_chooses_the_first_node(self):
        self.mount("--osts=6")
        for _ in range(4):
            _, path = self.protect_here("rs:4+2")
            start = nodes_of(path)[1][0]
            self.layout_is_as_asked(path, 4, 2, start, 6)
            self.holdfast("rm", path)

    def test_a_larger_striping_factor_spreads_each_unit_over_more_nodes(self):
        self.mount("--osts=9")
        self.env["HOLDFAST_STRIPING_FACTOR"] = "8"
        content, path = self.protect_here("rs:3+1", "--placement", "separate")
        data, redundancy = nodes_of(path)[1], nodes_of(self.redundancy(path, 0))[1]
        self.assertEqual((len(data), len(redundancy)), (6, 2))
        self.assertFalse(set(data) & set(redundancy))
        self.lose(redundancy[1])
        self.assertEqual(self.cat("lustre/out.dat"), content)
        self.lose(data[4])
        self.assertEqual(self.cat("lustre/out.dat"), content)

    def test_too_few_nodes_are_refused_and_nothing_is_left(self):
        self.mount("--osts=5")
        self.make_file("plain.dat")
        for placement in ("separate", "interleaved"):
            done = self.holdfast("import", "plain.dat", "lustre/out.dat", "--protect", "rs:4+2", "--placement", placement, expect=3)
            self.assert_one_sentence(done.stderr, "needs 6 distinct storage nodes", "gives 5", "--allow-shared-target")
            self.assertEqual(os.listdir(self.here), [])
        self.protect_here("rs:4+2", "--allow-shared-target")

    def test_a_file_system_that_does_not_heed_requests_is_found_out_and_refused(self):
        self.mount("--osts=12", "--deaf")
        self.make_file("plain.dat")
        for scheme in ("rs:4+2", "mirror:3"):
            done = self.holdfast("import", "plain.dat", "lustre/out.dat", "--protect", scheme, "--placement", "separate", expect=3)
            self.assert_one_sentence(done.stderr, "does not use the storage nodes it is asked for", "--allow-shared-target")
            self.assertEqual(os.listdir(self.here), [])

    def test_a_plain_file_that_a_glob_names_gets_the_stripes_that_were_asked_for(self):
        self.mount("--osts=8")
        del self.env["HOLDFAST_STRIPING_UNIT"]
        makers = {"open": "import os, sys; f = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY, 0o640); os.write(f, b'x' * 100)",
                  "exclusive": "import os, sys; f = os.open(sys.argv[1], os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600); os.write(f, b'x' * 100)",
                  "stream": "import sys, ctypes; c = ctypes.CDLL(None); c.fopen.restype = ctypes.c_void_p\n"
                            "f = ctypes.c_void_p(c.fopen(sys.argv[1].encode(), b'w')); c.fputs(b'x' * 100, f); c.fclose(f)"}
        for way, maker in makers.items():
            for buffers in ((), ("--buffer", "2x1MiB")):
                name = f"{way}{len(buffers)}.dat"
                path = os.path.join(self.here, name)
                with self.subTest(name):
                    run = ["run", *buffers, "--path", "*.dat", sys.executable, "-c", maker]
                    self.holdfast(*run, path, env={"HOLDFAST_STRIPING_UNIT": "256k", "HOLDFAST_STRIPING_FACTOR": "3"})
                    unit, nodes = nodes_of(path)
                    self.assertEqual((unit, len(nodes), os.path.getsize(path)), (256 << 10, 3, 100))
                    if way != "stream":
                        self.assertEqual(os.stat(path).st_mode & 0o777, 0o640 if way == "open" else 0o600)
                    again = self.holdfast(*run, path, expect=None)
                    self.assertEqual("FileExistsError" in again.stderr, way == "exclusive")
                    self.assertEqual(nodes_of(path), (unit, nodes))
                    # One of the two is enough, a file that no glob names and one without a wish stay as the file system makes them.
                    for other, env, layout in ((f"count{name}", {"HOLDFAST_STRIPING_FACTOR": "5"}, (1 << 20, 5)), (f"unit{name}", {"HOLDFAST_STRIPING_UNIT": "1M"}, (1 << 20, 1)),
                                               (f"none{name}", {}, (1 << 20, 1)), (f"{name}.other", {"HOLDFAST_STRIPING_FACTOR": "5"}, (1 << 20, 1))):
                        self.holdfast(*run, os.path.join(self.here, other), env=env)
                        unit, nodes = nodes_of(os.path.join(self.here, other))
                        self.assertEqual((unit, len(nodes)), layout, other)

    def test_interleaved_files_lie_on_nodes_of_their_own_too(self):
        self.mount("--osts=6")
        content, path = self.protect_here("rs:4+2", "--placement", "interleaved")
        unit, nodes = nodes_of(os.path.join(self.here, ".out.dat.holdfast", "data"))
        self.assertEqual((unit, sorted(nodes)), (UNIT, list(range(6))))
        self.lose(nodes[1], nodes[4])
        self.assertEqual(self.cat(path), content)

    def test_lost_nodes_are_read_past_named_and_mended(self):
        self.mount("--osts=6")
        content, path = self.protect_here("rs:4+2")
        start = nodes_of(path)[1][0]
        self.assertEqual([m["nodes"] for m in self.json("status", path)["files"][0]["members"]],
                         [[(start + i) % 6] for i in range(6)])
        self.lose((start + 1) % 6, (start + 4) % 6)
        self.assertEqual(self.cat(path), content)
        text = self.holdfast("status", path, expect=1).stdout
        for unit in ("data unit 1", "redundancy unit 0"):
            line = next(line for line in text.splitlines() if unit in line)
            self.assertIn("on node", line)
            self.assertNotIn(" ok", line)
        self.lose((start + 1) % 6, (start + 4) % 6, (start + 5) % 6)
        self.holdfast("cat", path, expect=2, text=False)
        self.order("")
        self.holdfast("repair", path)
        self.holdfast("status", path)
        self.holdfast("verify", path)
        self.layout_is_as_asked(path, 4, 2, start, 6)

    def test_files_are_written_past_lost_nodes_and_mended(self):
        self.mount("--osts=6")
        self.env["HOLDFAST_START_IODEVICE"] = "2"
        for number, lost in enumerate(((2,), (3, 1), (0, 5))):  # the first data unit's; data and redundancy; others
            self.lose(*lost)
            content, path = self.protect_here("rs:4+2", name=f"out{number}")
            members = self.json("status", path, expect=1)["files"][0]["members"]
            self.assertEqual(sorted(m["nodes"][0] for m in members if m["state"] != "ok"), sorted(lost))
            self.assertEqual(self.cat(path), content)
            self.order("")
            self.assertEqual(self.cat(path), content)  # what the lost ones missed is not read
            self.holdfast("repair", path)
            self.holdfast("verify", path)
            self.layout_is_as_asked(path, 4, 2, 2, 6)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), content)

    def test_a_node_that_hangs_is_one_lost_unit(self):
        self.mount("--osts=5")
        content, path = self.protect_here("mirror:3")
        sidecar = nodes_of(os.path.join(self.here, ".out.dat.holdfast", "manifest"))[1]
        hung = next(node for node in (nodes_of(self.redundancy(path, j))[1][0] for j in range(2)) if node not in sidecar)
        self.order(f"read hang ost={hung}")
        self.assertEqual(self.cat(path), content)
        members = self.json("status", path, expect=1)["files"][0]["members"]
        self.assertEqual([m["nodes"] for m in members if m["state"] != "ok"], [[hung]])
        self.order("")
        self.holdfast("status", path)

    def test_a_redundancy_object_that_was_removed_is_made_again_on_its_node(self):
        self.mount("--osts=6")
        _, path = self.protect_here("rs:4+2")
        start = nodes_of(path)[1][0]
        os.unlink(self.redundancy(path, 1))
        os.unlink(self.record(path, 2, "sums"))
        self.holdfast("repair", path)
        self.holdfast("verify", path)
        self.layout_is_as_asked(path, 4, 2, start, 6)


if __name__ == "__main__":
    unittest.main()
