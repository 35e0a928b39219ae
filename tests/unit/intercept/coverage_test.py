#!/usr/bin/env python3
"""What happens to each call is declared, never implied: the tables against what the machine's MPIs and libraries have.

usage: coverage_test.py SOURCE_DIR LIBRARY_DIR [NAME=MPICC...]
"""
import collections
import functools
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE, LIBRARIES = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
MPIS = dict(pair.split("=", 1) for pair in sys.argv[3:])
GEN = SOURCE / "src" / "intercept" / "gen"
sys.path.insert(0, str(GEN))
import generate  # noqa: E402

# They work on the handle alone, and a protected file's handle is a real MPI_File.
HANDLE_ONLY = {"MPI_File_" + x for x in ("c2f", "f2c", "toint", "fromint", "create_errhandler", "set_errhandler",
                                          "get_errhandler", "call_errhandler")}


def standard(functions):
    """Treatment of every name, large twins included."""
    names = {}
    for function in functions.values():
        names[function.name] = function.treatment
        if function.has_large:
            names[function.name + "_c"] = function.treatment
    return names


TABLE = generate.read_table(GEN / "mpi_functions.txt")
TREATMENT = standard(TABLE)
DECLARED = {name: generate.declared_functions(generate.preprocess([mpicc])) for name, mpicc in MPIS.items()}


def read_libc_table():
    rows = [line.split(" [")[0].split() for line in (GEN / "libc_functions.txt").read_text().splitlines()
            if line and not line.startswith("#")]
    return rows


@functools.cache
def versions_of(library):
    """Address, kind and NAME@VERSION of each symbol; @@ is what programs are linked to now."""
    shown = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    return [line.split() for line in shown.stdout.splitlines() if len(line.split()) == 3]


@functools.cache
def exported(library):
    return {name.split("@")[0] for _, _, name in versions_of(library)}


@functools.cache
def c_library():
    shown = subprocess.run(["ldd", sys.executable], capture_output=True, text=True, check=True).stdout
    return next(line.split()[2] for line in shown.splitlines() if line.split()[0].startswith("libc.so"))


def library_of(mpicc):
    """The library with the MPI's own functions, as the loader finds it for a program."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "program"
        subprocess.run([mpicc, "-x", "c", "-", "-o", program], input="#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n",
                       text=True, check=True)
        shown = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    loaded = [words[2] for words in map(str.split, shown.splitlines()) if len(words) > 2 and words[2].startswith("/")]
    return next(file for file in loaded if "PMPI_Init" in exported(file))
OF_PNETCDF = {"ncmpi_begin_indep_data", "ncmpi_end_indep_data", "ncmpi_redef"}  # in the libraries of MPIs


class MpiTable(unittest.TestCase):
    def test_every_function_that_an_mpi_h_declares_is_in_the_table(self):
        for mpi, declared in DECLARED.items():
            self.assertEqual(sorted(declared - set(TREATMENT)), [], f"{mpi}: add them to mpi_functions.txt")
            count = collections.Counter(TREATMENT[n] for n in declared)
            print(f"{mpi}: {len(declared)} functions: {dict(sorted(count.items()))}", file=sys.stderr)

    def test_every_file_function_is_owned_but_those_on_the_handle_alone(self):
        for name in set(TREATMENT).union(*DECLARED.values()):
            if name.startswith("MPI_File_") and name not in HANDLE_ONLY:
                self.assertEqual(TREATMENT.get(name), "owned", name)

    def test_every_function_that_may_complete_a_request_is_translated(self):
        """A request in, and its completion out: a flag, an index, a status, or a handle that becomes null."""
        for function in TABLE.values():
            requests = [a for a in function.arguments if a.kind == "REQUEST"]
            starts = function.short.split("_")[-1] in ("Start", "Startall") or function.name.startswith("MPI_Start")
            inout = [a for a in requests if a.array or not a.small.endswith("*") or function.short in ("Wait", "Test")]
            handle_only = function.name in ("MPI_Request_c2f", "MPI_Request_toint", "MPI_Grequest_complete")
            # Partitioned communication has its own requests, made by MPI_Psend_init and MPI_Precv_init.
            partitioned = function.short.startswith(("Pready", "Parrived"))
            if inout and not starts and not handle_only and not partitioned:
                self.assertEqual(function.treatment, "translated", function.name)

    def test_entries_are_exactly_what_is_owned_translated_or_hooked_and_declared(self):
        for mpi, declared in DECLARED.items():
            library = LIBRARIES / f"libholdfast-{mpi}.so"
            if not library.exists():
                continue
            wanted = {n for n, t in TREATMENT.items() if t != "passed" and n in declared}
            got = {s for s in exported(library) if s.startswith(("MPI_", "PMPI_"))}
            self.assertEqual(got, wanted | {"P" + n for n in wanted}, mpi)

    def test_the_default_library_exports_no_call_more_than_the_list_has(self):
        listed = {n for n in (pathlib.Path(__file__).parent / "exported_by_default.txt").read_text().splitlines() if n.startswith("MPI_")}
        for mpi, declared in DECLARED.items():
            library = LIBRARIES / f"libholdfast-{mpi}.so"
            if not library.exists():
                continue
            got = {s for s in exported(library) if s.startswith(("MPI_", "PMPI_"))}
            self.assertEqual(got, {p + n for n in listed & declared for p in ("", "P")}, mpi)

    def test_the_library_with_all_calls_exports_all_that_the_mpi_has(self):
        """But for what is behind `...`, and what programs look for to learn whether there is an MPI: they must not find us."""
        without = {"PMPI_" + x for x in ("Pcontrol", "Get_version", "Get_library_version", "Abi_get_version", "Initialized", "Finalized")}
        for mpi, mpicc in MPIS.items():
            library = LIBRARIES / f"libholdfast_all-{mpi}.so"
            if not library.exists():
                continue
            wanted = {s for s in exported(library_of(mpicc)) if re.match("PMPI_[A-Z]\\w*[a-z]", s)} - without
            self.assertGreater(len(wanted), 400, mpi)
            wanted |= {s.removeprefix("P") for s in wanted}
            self.assertEqual(sorted(wanted - exported(library)), [], mpi)
            self.assertEqual(sorted((without | {s.removeprefix("P") for s in without}) & exported(library)), [], mpi)


class LibcTable(unittest.TestCase):
    def test_each_door_is_named_once_with_a_known_treatment(self):
        rows = read_libc_table()
        self.assertEqual([r for r in rows if len(r) != 2 or r[1] not in ("owned", "refused", "passed")], [])
        twice = [n for n, c in collections.Counter(r[0] for r in rows).items() if c > 1]
        self.assertEqual(twice, [])

    def test_every_door_exists_in_this_c_library(self):
        of_cxx = subprocess.run(["c++", "-print-file-name=libstdc++.so.6"], capture_output=True, text=True, check=True).stdout.strip()
        there = exported(c_library()) | {name for name in exported(of_cxx) if name.startswith("_Z")}
        self.assertEqual([n for n, _ in read_libc_table() if n not in there], [])

    def test_doors_with_a_watched_twin_are_watched_too(self):
        """open64 beside open, __open_2 beside open: a program must not slip in by the twin."""
        watched = {n for n, t in read_libc_table() if t != "passed"}
        twins = [f for n in watched for f in (n + "64", f"__{n}_2", f"__{n}64_2", f"__{n}_chk", f"__{n}64_chk")]
        self.assertEqual([t for t in twins if t in exported(c_library()) and t not in watched], [])

    def test_functions_that_were_renewed_are_called_in_their_new_version(self):
        """A door looks up the function behind it by a version: without one, older C libraries answer with the oldest."""
        if platform.machine() != "x86_64":
            self.skipTest("the versions are those of x86-64")
        addresses = collections.defaultdict(dict)
        for address, _, name in versions_of(c_library()):
            name, at, version = name.partition("@")
            addresses[name][version.lstrip("@")] = address
            if version.startswith("@"):
                addresses[name]["now"] = address
        renewed = {n for n, t in read_libc_table() if t != "passed" and len(set(addresses[n].values())) > 1}
        listed = dict(re.findall(r'\{"(\w+)", "(GLIBC_[\d.]+)"\}', (SOURCE / "src/intercept/posix/real.cpp").read_text()))
        self.assertEqual(set(listed), renewed)
        self.assertEqual([n for n, version in listed.items() if addresses[n][version] != addresses[n]["now"]], [])

    def test_the_libraries_export_exactly_what_is_owned_or_refused(self):
        watched = {n for n, t in read_libc_table() if t != "passed"}
        if not list((SOURCE / "src" / "intercept" / "posix").glob("*.cpp")):
            self.skipTest("no POSIX part in this source tree")
        for library in sorted(LIBRARIES.glob("libholdfast*-*.so")):
            got = {s for s in exported(library) if not s.startswith(("MPI_", "PMPI_", "holdfast_"))}
            self.assertEqual(got - watched - OF_PNETCDF, set(), f"{library.name}: exported, but not declared")
            self.assertIn(len(got & OF_PNETCDF), (0, len(OF_PNETCDF)), library.name)
            self.assertEqual(watched - got, set(), f"{library.name}: declared, but not exported")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
