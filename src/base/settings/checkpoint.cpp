#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record records[] = {
    {.key = "checkpoint",
     .kind = Patterns{&CheckpointSettings::checkpoint},
     .value = "GLOB",
     .help = "Files that match are checkpoints: written on the node's own disk, protected in the background (docs/checkpoints.md); {step} and {rank} "
             "stand for their numbers",
     .more = "They go to the directory of --local of the program's own node; --local then serves these files only. 'shared:' before a "
             "pattern: ranks write its file together, on the nodes, also where one rank opens it by MPI."},
};

}  // namespace

constinit const Area checkpoint_area{"Checkpoints", records};

}  // namespace holdfast
