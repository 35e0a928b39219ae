# Copyright the Holdfast authors
#
# SPDX-License-Identifier: Apache-2.0
"""In a clone: spack repo add packaging/spack && spack dev-build holdfast@main"""
import pathlib

try:  # Spack 1.0 and later; before, spack.package has it
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:
    pass
from spack.package import *


class Holdfast(CMakePackage):
    """Files of unmodified MPI programs that survive the loss of storage: replicated or Reed-Solomon coded over several directories
    by a preloaded library, and mended by a command."""

    # The clone that this recipe lies in.
    git = f"file://{pathlib.Path(__file__).resolve().parents[4]}"

    license("Apache-2.0")

    version("main", branch="main")

    variant("mpi", default=True, description="Serve programs of this MPI as well as serial ones")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3:", type=("build", "run"))
    depends_on("cli11@2.1:", type="build")
    depends_on("fmt")
    depends_on("nlohmann-json")
    depends_on("tomlplusplus", type="build")
    depends_on("isa-l")
    depends_on("xxhash")
    depends_on("libsodium")
    depends_on("zlib-api")
    depends_on("mpi", when="+mpi")

    def cmake_args(self):
        # The tests want several MPIs at once, and rapidcheck; `make test` in a clone runs them.
        args = [self.define("HOLDFAST_TESTS", False), self.define("HOLDFAST_BENCH", False), self.define("HOLDFAST_FIND_MPI", False)]
        if self.spec.satisfies("+mpi"):
            args.append(self.define("HOLDFAST_MPICC", self.spec["mpi"].mpicc))
        return args
