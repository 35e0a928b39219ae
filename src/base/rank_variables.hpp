// Variables by which a process knows its rank in its job: Open MPI's, PMIx's, Hydra's and Slurm's. The first that is set is asked.
#pragma once

namespace holdfast {

inline constexpr const char* rank_variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};

}  // namespace holdfast
