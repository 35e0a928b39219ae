#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record checkpoint_records[] = {
    {.key = "checkpoint",
     .kind = Patterns{&CheckpointSettings::checkpoint},
     .value = "GLOB",
     .help = "Files that match are checkpoints: written to the node's own disk, protected in the background (docs/checkpoints.md); "
             "{step} and {rank} stand for their numbers",
     .more = "A wildcard stands for an unknown number of files: 'ck/{step}/*.{rank}'. Without any field each file is "
             "protected by itself: 'results/*.dat'. They go to the directory of --local on the "
             "program's own node, and --local then serves these files only. With 'shared:' before a pattern, ranks write its file "
             "together on the nodes, by MPI or each by an open of its own."},
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
     .help = "When close returns, a checkpoint is on its own node only (background), or protected as well (close)",
     .more = "With close, the wait takes at most --lock-patience. If the checkpoint cannot be protected, one line says why, and the "
             "close still succeeds."},
    {.key = "units",
     .kind = Either{&CheckpointSettings::units_remote, "own", "remote"},
     .value = "WHERE",
     .help = "Who keeps the units of a checkpoint: the node that wrote it keeps one of each row itself (own), or others keep them all (remote)",
     .more = "With remote, K+M+1 nodes are needed, and each byte of a checkpoint is sent (K+M)/K times; with own (K+M-1)/K times. The loss of the "
             "node that wrote it then takes its local copy, and no unit. While others are too few, it keeps one."},
    {.key = "pack_below",
     .kind = Size{&CheckpointSettings::pack_below_bytes, 0, 16ull << 20},
     .value = "SIZE",
     .help = "Files of a checkpoint that are smaller, and wait on one node, are protected together as one; 0: each by itself",
     .more = "It takes one commit for all of them. Each is restored, drained and listed as a file of its own."},
};

}  // namespace

constinit const Area checkpoint_area{"Checkpoints", checkpoint_records};

}  // namespace holdfast
