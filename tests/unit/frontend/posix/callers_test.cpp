#include "frontend/posix/callers.hpp"

#include <gtest/gtest.h>

namespace holdfast::frontend::posix {
namespace {

TEST(Callers, objects_of_mpi_are_known_by_their_names) {
  for (const char* path :
       {"/usr/lib/x86_64-linux-gnu/libmpi.so.40", "/usr/lib64/openmpi/lib/openmpi3/mca_btl_vader.so", "/opt/mpi/lib/libmca_common_sm.so.80",
        "/usr/lib/x86_64-linux-gnu/openmpi/lib/ompi_monitoring_prof.so", "/usr/lib/x86_64-linux-gnu/libmpich.so.12", "/usr/lib/ucx/x.so"})
    EXPECT_TRUE(is_part_of_mpi(path)) << path;
}

// Distributions and module trees have a directory for each MPI, and in it what was built with that one.
TEST(Callers, objects_that_lie_below_an_mpis_directory_are_the_programs) {
  for (const char* path : {"/usr/lib64/openmpi/lib/libhdf5.so", "/sw/openmpi/5.0/solver/lib/libsolver.so", "/home/user/build/openmpi/app", ""})
    EXPECT_FALSE(is_part_of_mpi(path)) << path;
}

}  // namespace
}  // namespace holdfast::frontend::posix
