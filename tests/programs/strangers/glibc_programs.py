"""glibc's own tests of files, each a program that stands alone: compiled against the C library that is here.

Their `support/` library is built from glibc's sources too. What lies in /tmp there lies in the working directory here. Files that the C library
would make by itself (mkstemp, tmpfile) come from calls of the program (glibc_shim.c), for only those can be served.
"""
import concurrent.futures
import hashlib
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
COMPILE = ["cc", "-std=gnu11", "-O1", "-w", "-D_GNU_SOURCE", "-DOBJPFX=\"\"", "-include", str(HERE / "glibc_shim.h")]

# Directory: its tests about files that compile alone.
TESTS = {
    "stdio-common": "bug* scanf* temptest test-fseek test-fwrite test-popen test_rdwr tst-*",
    "libio": "bug-* test-* tst-*",
    "io": "bug-ftw* test-* tst-*",
    "posix": "bug-glob* test-ssize-max test-vfork tst-chmod tst-dir tst-exec* tst-fexecve tst-fork tst-glob* tst-gnuglob* tst-mmap* tst-pathconf "
             "tst-posix_* tst-preadwrite* tst-spawn* tst-truncate* tst-vfork* tst-wait*",
    "rt": "tst-aio* tst-bz28213",
    "dirent": "bug-* tst-* list opendir-tst1",
    "misc": "tst-mntent* tst-preadvwritev* tst-select tst-pselect tst-ioctl tst-error1",
    "stdlib": "test-canon* tst-canon* tst-realpath* tst-system",
}
# Parts of others, tests of one static link or of 32 bits' time, and those that need a make of glibc's own.
LEFT_OUT = ["*-static", "*-time64", "*-common", "*-skeleton", "*-main"]
HEADERS = ["array_length.h", "intprops.h", "libc-diag.h", "libc-misc.h", "scratch_buffer.h", "file_change_detection.h", "libc-pointer-arith.h"]
LOCALES = ["de_DE.UTF-8", "en_US.UTF-8", "de_DE.ISO-8859-1", "en_US.ISO-8859-1", "ja_JP.EUC-JP"]
STARTED_AGAIN = {"tst-exec", "tst-execvpe5", "tst-spawn", "tst-spawn5", "tst-spawn6"}  # by themselves, as the arguments say


class Programs:
    def __init__(self, source, place):
        """The programs of the glibc at `source`, in a directory below `place` that is named after all that they are made from."""
        self.source = source
        made_from = hashlib.sha256(str(source.resolve()).encode())
        for name in ("glibc_shim.h", "glibc_shim.c", "glibc_programs.py"):
            made_from.update((HERE / name).read_bytes())
        made_from.update((source / "version.h").read_bytes() if (source / "version.h").exists() else b"")
        self.place = place / f"glibc-{made_from.hexdigest()[:12]}"
        self.src, self.bin, self.locales = (self.place / name for name in ("src", "bin", "locales"))

    def names(self):
        """DIRECTORY/TEST of each that is to be there."""
        found = []
        for directory, patterns in TESTS.items():
            files = {path for pattern in patterns.split() for path in (self.source / directory).glob(pattern + ".c")}
            found += [f"{directory}/{path.stem}" for path in sorted(files) if not any(path.match(one + ".c") for one in LEFT_OUT)]
        return found

    def build(self):
        """Names of those that could be built; quick when they are there."""
        if not (self.place / ".complete").exists():
            shutil.rmtree(self.place, ignore_errors=True)
            for old in self.place.parent.glob("glibc-*"):
                shutil.rmtree(old, ignore_errors=True)
            self.copy_sources()
            self.build_support()
            self.build_locales()
            for directory in TESTS:
                (self.bin / directory).mkdir(parents=True)
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                list(pool.map(self.build_one, self.names()))
            (self.place / ".complete").touch()
        return [name for name in self.names() if (self.bin / name).exists()]

    def copy_sources(self):
        for directory in [*TESTS, "support"]:
            (self.src / directory).mkdir(parents=True)
            for path in [*(self.source / directory).glob("*.c"), *(self.source / directory).glob("*.h"), *(self.source / directory).glob("*.input")]:
                text = path.read_bytes()
                if directory != "support":
                    text = text.replace(b'"/tmp/', b'"./').replace(b'"/tmp"', b'"."')
                (self.src / directory / path.name).write_bytes(text)
        (self.src / "malloc").mkdir()
        for path in (self.source / "malloc").glob("*.[ch]"):
            if path.name.startswith(("dynarray", "scratch_buffer")):
                shutil.copy(path, self.src / "malloc")
        for name in ("config.h", "libc-config.h"):
            (self.src / name).touch()
        shutil.copy(self.source / "test-skeleton.c", self.src)
        for header in HEADERS:
            if (self.source / "include" / header).exists() and not pathlib.Path("/usr/include", header).exists():
                shutil.copy(self.source / "include" / header, self.src)

    def build_support(self):
        objects = self.place / "objects"
        objects.mkdir()

        def one(path):
            made = objects / (path.stem + ".o")
            done = subprocess.run([*COMPILE, "-I", self.src, "-I", self.src / "support", "-c", path, "-o", made], capture_output=True)
            return made if done.returncode == 0 else None

        sources = [path for path in sorted((self.src / "support").glob("*.c")) if not path.match("tst-*") and not path.match("*-container.c")
                   and not path.match("test-run-command.c") and not path.match("links-dso*")]
        helpers = (self.src / "malloc").glob("*[!n].c")  # but for the skeleton, which is included
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            made = [path for path in pool.map(one, [HERE / "glibc_shim.c", *sources, *helpers]) if path]
        subprocess.run(["ar", "rcs", self.place / "libsupport.a", *made], check=True)

    def build_locales(self):
        """The locales that the tests ask for; without localedef those tests fail natively and are not compared."""
        data = self.source / "localedata"
        self.locales.mkdir()
        for name in LOCALES if shutil.which("localedef") else []:
            language, charset = name.split(".")
            subprocess.run(["localedef", "--no-archive", "-i", data / "locales" / language, "-f", data / "charmaps" / charset, self.locales / name],
                           env={"I18NPATH": str(data), "PATH": "/usr/bin:/bin"}, capture_output=True)

    def build_one(self, name):
        done = subprocess.run([*COMPILE, "-I", self.src, "-I", self.src / "support", self.src / f"{name}.c", self.place / "libsupport.a",
                               "-o", self.bin / name, "-lpthread", "-lm"], capture_output=True)
        if done.returncode != 0:
            (self.bin / f"{name}.err").write_bytes(done.stderr)

    def command(self, name):
        program = self.bin / name
        return [str(program)] + (["--", str(program)] if program.name in STARTED_AGAIN else [])
