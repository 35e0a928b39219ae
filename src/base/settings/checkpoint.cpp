#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record records[] = {
    {.key = "checkpoint",
     .kind = Patterns{&CheckpointSettings::checkpoint},
     .value = "GLOB",
     .help = "Files that match are checkpoints: written on the node's own disk, protected in the background (docs/checkpoints.md); {step} and {rank} "
             "stand for their numbers",
     .more = "A wildcard stands for files of which nobody knows how many there will be: 'ck/{step}/*.{rank}'. They go to the directory of --local of "
             "the program's own node; --local then serves these files only. 'shared:' before a "
             "pattern: ranks write its file together, on the nodes, by MPI or each by an open of its own."},
    {.key = "complete",
     .kind = Patterns{&CheckpointSettings::complete},
     .value = "GLOB",
     .help =
         "A checkpoint is complete when a file that matches is closed, with all files of its {step} that were opened before (docs/checkpoints.md)",
     .more = "The file is one of the checkpoint itself. With a {rank} in it each rank completes its own files. For patterns of --checkpoint with "
             "wildcards, and for files that ranks write one after another."},
    {.key = "protect_at",
     .kind = Either{&CheckpointSettings::protect_at_close, "background", "close"},
     .value = "WHEN",
     .help = "Where a checkpoint is on its node alone when its close returns (background), or protected as well (close)",
     .more = "With close it is waited for at most --lock-patience. Where it cannot be protected one line says why; the close succeeds all the same."},
};

}  // namespace

constinit const Area checkpoint_area{"Checkpoints", records};

}  // namespace holdfast
