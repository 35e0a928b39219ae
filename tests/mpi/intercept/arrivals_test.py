#!/usr/bin/env python3
"""Unmodified programs under the generated entries of one MPI: what they call must arrive, once, and nothing else.

The front end behind the entries only counts and hands on (counting_frontend.py), so the programs' results are native.
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import launch

options = None
work = None


def run(command, **environment):
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    return result


def build(compiler, source, *flags):
    target = work / pathlib.Path(source).stem
    run([compiler, *flags, str(options.sources / source), "-o", str(target)])
    return target


def fortran():
    """The Fortran wrapper beside mpicc, where this MPI has one."""
    path = pathlib.Path(options.mpicc)
    suffix = path.suffix if path.suffix in (".mpich", ".openmpi") else ""
    wrapper = path.with_name("mpif90" + suffix)
    return str(wrapper) if wrapper.exists() else None


def preloaded(program, *arguments, ranks=1, preload=None):
    """Runs under the launcher, which is preloaded as well; returns (result, what arrived over all ranks)."""
    arrivals = work / "arrivals.txt"
    arrivals.unlink(missing_ok=True)
    command = launch.command(options.mpicc, ranks) + [str(program), *map(str, arguments)]
    result = run(command, LD_PRELOAD=preload or str(options.library), HOLDFAST_TEST_ARRIVALS=str(arrivals))
    counts = collections.Counter()
    for line in arrivals.read_text().splitlines() if arrivals.exists() else []:
        name, count = line.split()
        counts[name] += int(count)
    return result, counts


def has_large_count():
    source = work / "large.c"
    source.write_text("#include <mpi.h>\nint main(void) { return sizeof &MPI_File_write_at_c == 0; }\n")
    return subprocess.run([options.mpicc, "-c", source, "-o", work / "large.o", "-Werror"], capture_output=True).returncode == 0


class Arrivals(unittest.TestCase):
    def setUp(self):
        self.file = work / "file.dat"
        self.file.unlink(missing_ok=True)

    def check_written(self, counts, ranks=1):
        self.assertEqual(counts["MPI_File_open"], ranks)
        self.assertEqual(counts["MPI_File_write_at"], ranks)
        self.assertEqual(counts["MPI_File_iwrite_at"], ranks)
        self.assertEqual(counts["MPI_Wait"], ranks)
        self.assertEqual(counts["MPI_File_close"], ranks)
        self.assertEqual(counts["MPI_Finalize"], ranks)
        self.assertEqual(self.file.read_bytes()[:20], b"01234567890123456789")

    def test_c_calls_both_names_and_large_counts_arrive_once_each(self):
        large = has_large_count()
        program = build(options.mpicc, "arrivals.c", *(["-DHAVE_LARGE_COUNT"] if large else []))
        result, counts = preloaded(program, self.file)
        self.assertEqual(counts["MPI_File_write_at"], 3 if large else 2)
        # The second file is closed by a callback inside MPI_Finalize.
        self.assertEqual((counts["MPI_File_open"], counts["MPI_File_close"]), (2, 2))
        for name in ("File_iwrite_at", "File_iread_at", "File_get_type_extent", "Wait", "Init", "Finalize", "File_seek",
                     "File_preallocate"):
            self.assertEqual(counts["MPI_" + name], 1, name)
        self.assertGreaterEqual(counts["MPI_Test"], 1)
        # What the handler called arrived although it ran inside our code; an exception became an error code.
        self.assertEqual(counts["MPI_File_get_size"], 1)
        self.assertIn("wrote 10 extent 4 handler 1 thrown 1 data right", result.stdout)
        self.assertIn("holdfast: MPI_File_preallocate failed inside Holdfast: on purpose", result.stderr)

    def fortran_program_arrives(self, source):
        if not fortran():
            self.skipTest("this MPI has no Fortran")
        program = build(fortran(), source)
        result, counts = preloaded(program, self.file)
        self.assertIn("wrote 10", result.stdout)
        self.check_written(counts)

    def test_mpif_h_arrives(self):
        self.fortran_program_arrives("arrivals_mpif.f90")

    def test_use_mpi_arrives(self):
        self.fortran_program_arrives("arrivals_mpi.f90")

    def test_use_mpi_f08_arrives(self):
        self.fortran_program_arrives("arrivals_f08.f90")

    def test_mpi4py_arrives(self):
        python = pathlib.Path(options.mpicc).with_name("python")
        if subprocess.run([python, "-c", "import mpi4py"], capture_output=True).returncode if python.exists() else True:
            self.skipTest("no mpi4py beside this MPI")
        if options.name == "mpiabi":
            self.skipTest("the mpi4py here is built for the MPI's own interface")
        result, counts = preloaded(python, options.sources / "arrivals.py", self.file)
        self.assertIn("wrote 10", result.stdout)
        self.check_written(counts)

    def test_a_file_that_the_front_end_does_not_know_passes(self):
        program = build(options.mpicc, "passing.c", "-ldl")
        libmpi = next(line.split()[2] for line in run(["ldd", program]).stdout.splitlines() if "libmpi" in line)
        result, counts = preloaded(program, self.file, libmpi)
        self.assertIn("write 0", result.stdout)
        self.assertEqual(counts["MPI_File_write_at"], 0)
        self.assertEqual(self.file.read_bytes(), b"012345678\0")

    def test_profilers_stack_before_and_behind(self):
        profiler = work / "profiler.so"
        run([options.mpicc, "-shared", "-fPIC", options.sources / "profiler.c", "-o", profiler])
        program = build(options.mpicc, "arrivals.c")
        result, counts = preloaded(program, self.file, preload=f"{profiler}:{options.library}")
        self.assertIn("profiler saw 1 writes", result.stderr)
        self.assertEqual(counts["MPI_File_write_at"], 2)
        # Behind us it sees MPI's start and end, and the calls that are not ours.
        result, counts = preloaded(program, self.file, preload=f"{options.library}:{profiler}")
        self.assertIn("profiler saw 0 writes", result.stderr)
        self.assertEqual(counts["MPI_File_write_at"], 2)
        self.assertEqual(counts["MPI_Finalize"], 1)
        passing = build(options.mpicc, "passing.c", "-ldl")
        libmpi = next(line.split()[2] for line in run(["ldd", passing]).stdout.splitlines() if "libmpi" in line)
        result, counts = preloaded(passing, self.file, libmpi, preload=f"{options.library}:{profiler}")
        self.assertIn("profiler saw 1 writes", result.stderr)
        self.assertIn("write 0", result.stdout)
        self.assertEqual(counts["MPI_File_write_at"], 0)


class Preload(unittest.TestCase):
    def test_calls_that_are_not_about_files_give_what_they_give_without_a_library(self):
        program = build(options.mpicc, "many_calls.c", "-Wall", "-Wno-deprecated-declarations")
        for ranks in (1, 4):
            plain = run(launch.command(options.mpicc, ranks) + [str(program)]).stdout
            result, _ = preloaded(program, ranks=ranks)
            self.assertGreater(len(plain.splitlines()), 28)
            self.assertEqual(result.stdout, plain)
            self.assertNotIn("holdfast", result.stderr)

    def test_a_process_without_mpi_runs_and_loads_none(self):
        true = shutil.which("true")
        loaded = run([true], LD_PRELOAD=str(options.library), LD_DEBUG="libs").stderr
        self.assertIn(options.library.name, loaded)
        self.assertNotIn("libmpi", loaded.replace(str(options.library), ""))
        run(["bash", "-c", "echo $(true)"], LD_PRELOAD=str(options.library), LD_BIND_NOW="1")

    def test_only_doors_are_exported(self):
        symbols = run(["nm", "-D", "--defined-only", options.library]).stdout.splitlines()
        exported = {line.split()[-1] for line in symbols}
        table = options.libc_table.read_text().splitlines()
        doors = {line.split()[0] for line in table if line.split()[1:2] in (["owned"], ["refused"])}
        of_pnetcdf = {"ncmpi_begin_indep_data", "ncmpi_end_indep_data", "ncmpi_redef"}
        self.assertEqual([s for s in exported - doors - of_pnetcdf if not s.startswith(("MPI_", "PMPI_", "holdfast_"))], [])

    def test_no_data_and_no_function_of_an_mpi_is_needed(self):
        symbols = run(["nm", "-D", "--undefined-only", options.library]).stdout.split()
        self.assertEqual([s for s in symbols if "MPI" in s or "mpi" in s], [])
        self.assertNotIn("libmpi", run(["readelf", "-d", options.library]).stdout.replace(options.library.name, ""))

    def test_a_program_of_another_mpi_ends_with_a_sentence(self):
        if not options.other_mpicc:
            self.skipTest("only one MPI here")
        program = work / "other"
        run([options.other_mpicc, options.sources / "arrivals.c", "-o", program])
        result = subprocess.run([program, work / "file.dat"], capture_output=True, text=True, timeout=60,
                                env={**os.environ, "LD_PRELOAD": str(options.library)})
        self.assertEqual(result.returncode, 1)
        self.assertIn("is preloaded; start it with `holdfast run`", result.stderr)

    # What makes a start slow, counted: names that the loader looks up and pages that are touched. How long it takes is the benchmarks' to say.
    def test_a_start_takes_few_look_ups_and_pages(self):
        def cost(**more):
            environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"} | more
            said = subprocess.run(["/bin/true"], env={**environment, "LD_DEBUG": "statistics"}, check=True, capture_output=True, text=True).stderr
            look_ups = int(re.search(r"final number of relocations: (\d+)", said).group(1))
            child = subprocess.Popen(["/bin/true"], env=environment)
            return look_ups, os.wait4(child.pid, 0)[2].ru_minflt

        plain, ours = cost(), cost(LD_PRELOAD=str(options.library))
        print(f"start-up: {plain[0]} -> {ours[0]} look-ups, {plain[1]} -> {ours[1]} pages", file=sys.stderr)
        self.assertLess(ours[0] - plain[0], 1000)
        self.assertLess(ours[1] - plain[1], 1000)


def main():
    global options, work
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--mpicc", required=True)
    parser.add_argument("--other-mpicc", help="of another implementation")
    parser.add_argument("--library", required=True, type=pathlib.Path)
    parser.add_argument("--sources", required=True, type=pathlib.Path)
    parser.add_argument("--libc-table", required=True, type=pathlib.Path)
    options, rest = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


main()
