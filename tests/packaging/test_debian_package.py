"""The package of `make deb` holds what `make install` installs, works where it is installed, and leaves nothing when it is removed."""
import glob
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

BUILD = os.environ.get("HOLDFAST_BUILD") or os.path.join(os.path.dirname(__file__), "../../build")
DOCUMENTATION = "./usr/share/doc/holdfast/"
SKIPPED = 77


def output(*command, **more):
    done = subprocess.run(command, capture_output=True, timeout=200, **more)
    if done.returncode:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout.decode()}\n{done.stderr.decode()}")
    return done.stdout


def files_below(directory):
    return {"./" + os.path.relpath(os.path.join(root, name), directory) for root, _, files in os.walk(directory) for name in files}


class DebianPackage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = os.path.realpath(tempfile.mkdtemp(prefix="holdfast-deb-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        output("cpack", "-G", "DEB", "--config", f"{BUILD}/CPackConfig.cmake", "-B", f"{cls.dir}/packed", cwd=cls.dir)
        cls.package, = glob.glob(f"{cls.dir}/packed/*.deb")
        with tarfile.open(fileobj=io.BytesIO(output("dpkg-deb", "--fsys-tarfile", cls.package))) as tar:
            cls.members = {member.name: member for member in tar.getmembers()}

    def field(self, name):
        return output("dpkg-deb", "--field", self.package, name).decode().strip()

    def test_its_files_are_those_of_an_installation(self):
        there = f"{self.dir}/there"
        output("cmake", "--install", BUILD, "--prefix", "/usr", "--strip", env={**os.environ, "DESTDIR": there})
        packed = {name for name, member in self.members.items() if not member.isdir() and not name.startswith(DOCUMENTATION)}
        pages = {name for name in packed if "/man/" in name}
        self.assertTrue(all(name.endswith(".gz") for name in pages), pages)
        as_installed = {name.removesuffix(".gz").replace("vendor-completions", "site-functions") for name in packed}
        self.assertEqual(as_installed, files_below(there))
        for name in ("bin/holdfast", "lib/libholdfast-posix.so", "libexec/holdfast/pointer-server", "include/holdfast/holdfast.h",
                     "share/man/man1/holdfast.1.gz", "share/man/man1/holdfast-run.1.gz", "share/bash-completion/completions/holdfast",
                     "share/zsh/vendor-completions/_holdfast", "share/fish/vendor_completions.d/holdfast.fish"):
            self.assertIn("./usr/" + name, packed)
        self.assertIn(DOCUMENTATION + "copyright", self.members)

    def test_everything_is_roots_and_readable_by_all(self):
        for name, member in self.members.items():
            self.assertEqual((member.uid, member.gid), (0, 0), name)
            wanted = 0o755 if member.isdir() or "bin/" in name or name.startswith("./usr/libexec/") else 0o644
            self.assertEqual(member.mode & ~0o111 | member.mode & wanted & 0o111, wanted, name)
            self.assertFalse(member.mode & 0o022, name)

    def test_what_it_says_of_itself(self):
        self.assertEqual(self.field("Package"), "holdfast")
        self.assertEqual(self.field("Section"), "science")
        self.assertEqual(self.field("Homepage"), "")
        self.assertRegex(self.field("Maintainer"), r"^.+ <.+@.+>$")
        short, *long = self.field("Description").split("\n")
        self.assertLessEqual(len(short), 80)
        self.assertGreater(len(long), 3)
        self.assertTrue(all(line.startswith(" ") and len(line) <= 160 for line in long), long)

    def test_no_mpi_is_needed(self):
        depends = self.field("Depends")
        for library in ("libc6", "libisal2", "libxxhash0", "zlib1g", "libstdc++6"):
            self.assertIn(library, depends)
        self.assertNotIn("mpi", depends)
        self.assertEqual(self.field("Recommends"), "mpich | openmpi-bin")

    def installed(self, root, *command, **more):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_") and k != "LD_PRELOAD"}
        return output(f"{root}/usr/bin/holdfast", *command, cwd=f"{self.dir}/work", env={**environment, **more}).decode()

    def test_it_is_installed_works_and_is_removed(self):
        root, work = f"{self.dir}/root", f"{self.dir}/work"
        for directory in (f"{root}/var/lib/dpkg/info", f"{root}/var/lib/dpkg/updates", f"{root}/etc", f"{work}/a", f"{work}/b"):
            os.makedirs(directory)
        with open(f"{root}/var/lib/dpkg/status", "w"):
            pass
        # A database of packages of its own, and an ldconfig for CPack's scripts that does nothing: the machine's are not touched.
        os.mkdir(f"{self.dir}/bin")
        with open(f"{self.dir}/bin/ldconfig", "w") as script:
            script.write("#!/bin/sh\n")
        os.chmod(f"{self.dir}/bin/ldconfig", 0o755)
        dpkg = ["env", f"PATH={self.dir}/bin:{os.environ['PATH']}", "dpkg", f"--root={root}", f"--log={self.dir}/dpkg.log",
                "--force-not-root", "--force-depends", "--force-bad-path", "--force-script-chrootless"]
        output(*dpkg, "-i", self.package)
        self.assertIn("Status: install ok installed", output(*dpkg, "-s", "holdfast").decode())

        self.assertEqual(self.installed(root, "--version"), f"holdfast {self.field('Version')}\n")
        self.assertIn("ok", self.installed(root, "doctor", "--targets", "a,b", PATH=f"{root}/usr/bin"))
        with open(f"{work}/x", "wb") as file:
            file.write(os.urandom(300_001))
        self.installed(root, "run", "--protect", "mirror:2", "--targets", "a,b", "--path", "y", "--", "cp", "x", "y")
        self.assertIn("mirror:2", self.installed(root, "status", "y"))
        shutil.rmtree(f"{work}/a")
        self.installed(root, "export", "y", "z")
        with open(f"{work}/x", "rb") as before, open(f"{work}/z", "rb") as after:
            self.assertEqual(before.read(), after.read())
        self.assertIn("SEE ALSO", output("man", "-l", f"{root}/usr/share/man/man1/holdfast-run.1.gz").decode() if shutil.which("man") else "SEE ALSO")

        output(*dpkg, "-r", "holdfast")
        left = {name for name in files_below(root) if not name.startswith("./var/lib/dpkg/")}
        self.assertEqual(left, set())
        self.assertFalse(os.path.exists(f"{root}/usr"), os.listdir(root))


if __name__ == "__main__":
    missing = [program for program in ("cpack", "dpkg", "dpkg-deb", "dpkg-shlibdeps") if not shutil.which(program)]
    if missing:
        print(f"skipped: a Debian package is built on Debian; not found: {', '.join(missing)}")
        sys.exit(SKIPPED)
    unittest.main()
