// Variables by which a process knows its rank in its job: Open MPI's, PMIx's, Hydra's and Slurm's. The first that is set is asked.
#pragma once

namespace holdfast {

inline constexpr const char* rank_variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
// A batch system may have set Slurm's for a script as well.
inline constexpr const char* rank_variables_of_launchers[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
// By which it knows how many there are. Slurm's of the step: SLURM_NTASKS is also what a batch job may start, in its script, where a serial program is one
// process all the same.
inline constexpr const char* size_variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",      "SLURM_STEP_NUM_TASKS",
                                                 "MV2_COMM_WORLD_SIZE",  "FLUX_JOB_SIZE", "JSM_NAMESPACE_SIZE"};

// Whether this process's job has no other rank, as far as launchers have said how many there are: all that have, for one may have been started by another.
bool is_only_rank();

}  // namespace holdfast
