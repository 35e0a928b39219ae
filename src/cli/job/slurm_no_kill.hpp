// Whether Slurm lets this job live on when it loses a node. It does not tell; what began the job does.
#pragma once

namespace holdfast::cli {

// Known of a salloc that this process descends from, of the script that sbatch was given, and of their variables; not of sbatch's own command line.
bool is_known_to_outlive_nodes();

}  // namespace holdfast::cli
