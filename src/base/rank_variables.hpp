// Variables by which a process knows its rank in its job: Open MPI's, PMIx's, Hydra's and Slurm's. The first that is set is asked.
#pragma once

namespace holdfast {

inline constexpr const char* rank_variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
// A batch system may have set Slurm's for a script as well.
inline constexpr const char* rank_variables_of_launchers[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

}  // namespace holdfast
