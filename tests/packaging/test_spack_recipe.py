"""Spack's recipe names what CMakeLists.txt looks for, and a package can be built without what only tests and benchmarks want."""
import ast
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
RECIPE = SOURCE / "packaging/spack/packages/holdfast/package.py"

# CMake's names and Spack's.
SPACK = {"Threads": None, "PkgConfig": "pkgconfig", "Python3": "python", "CLI11": "cli11", "fmt": "fmt", "nlohmann_json": "nlohmann-json",
         "ISAL": "isa-l", "XXHASH": "xxhash", "SODIUM": "libsodium", "ZLIB": "zlib-api"}
# What no find_package says: compilers, CMake, a header by its include, the MPIs by their wrappers.
FURTHER = {"c", "cxx", "cmake", "tomlplusplus", "mpi"}


def cmake_texts():
    """Those that a package is built by."""
    folders = ("src", "examples", "cmake")
    files = [SOURCE / "CMakeLists.txt"] + [f for folder in folders for f in (SOURCE / folder).rglob("*") if f.suffix in (".txt", ".cmake")]
    return [f.read_text() for f in files]


class SpackRecipe(unittest.TestCase):
    def setUp(self):
        self.text = RECIPE.read_text()
        self.recipe = next(node for node in ast.parse(self.text).body if isinstance(node, ast.ClassDef))

    def calls(self, name):
        return [node for node in ast.walk(self.recipe) if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == name]

    def test_it_is_a_package_of_cmake_in_a_repository_of_spacks(self):
        self.assertEqual([base.id for base in self.recipe.bases], ["CMakePackage"])
        self.assertEqual(self.recipe.name, "Holdfast")
        self.assertIn("namespace: holdfast", (SOURCE / "packaging/spack/repo.yaml").read_text())
        self.assertEqual(RECIPE.parents[4], SOURCE)

    def test_it_depends_on_what_cmake_looks_for(self):
        wanted = set(FURTHER)
        for text in cmake_texts():
            for name in re.findall(r"^\s*(?:find_package|pkg_check_modules)\((\w+) REQUIRED", text, re.MULTILINE):
                self.assertIn(name, SPACK, "a new dependency: give its name in Spack here, and in the recipe")
                wanted.add(SPACK[name])
        named = {re.match(r"[\w-]+", call.args[0].value).group() for call in self.calls("depends_on")}
        self.assertEqual(named, wanted - {None})

    def test_the_mpi_is_a_variant(self):
        mpi, = [call for call in self.calls("depends_on") if call.args[0].value == "mpi"]
        self.assertEqual([k.value.value for k in mpi.keywords if k.arg == "when"], ["+mpi"])
        self.assertIn("mpi", [call.args[0].value for call in self.calls("variant")])

    def test_what_it_defines_cmake_knows(self):
        defined = {call.args[0].value for call in self.calls("define")}
        self.assertEqual(defined, {"HOLDFAST_TESTS", "HOLDFAST_BENCH", "HOLDFAST_FIND_MPI", "HOLDFAST_MPICC"})
        text = "\n".join(cmake_texts())
        for name in defined:
            self.assertRegex(text, rf"(?m)^(option\({name} |set\({name} .* CACHE )")

    def test_its_build_asks_for_nothing_of_the_tests(self):
        with tempfile.TemporaryDirectory(prefix="holdfast-spack-") as build:
            absent = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("GTest", "rapidcheck", "benchmark")]
            done = subprocess.run(["cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", "-DHOLDFAST_TESTS=OFF", "-DHOLDFAST_BENCH=OFF",
                                   "-DHOLDFAST_FIND_MPI=OFF", *absent], capture_output=True, text=True, timeout=200)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("MPI: none found", done.stdout)
            targets = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], capture_output=True, text=True, timeout=200).stdout
            self.assertIn("bin/holdfast:", targets)
            self.assertIn("lib/libholdfast-posix.so:", targets)
            for word in ("_test:", "bench", "mpich", "openmpi"):
                self.assertFalse([line for line in targets.splitlines() if word in line and "src/" not in line], word)


if __name__ == "__main__":
    unittest.main()
