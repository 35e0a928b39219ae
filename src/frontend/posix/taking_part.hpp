// A process that `holdfast run --replicas` has started becomes one of the replicas of its rank.
#pragma once

namespace holdfast::frontend::posix {

// Whether MPI_Comm_spawn has started it: the launcher did, with the environment and a number of a rank of the command. It is none.
bool is_spawned();

// For a launcher that a replica has started, or has become: the job ends, and this process. Another one is left alone, as is who only asks for a version.
void refuse_to_start_ranks(char* const* words);

// A child of a replica is about to write a file: once in each team, where they share it. True: nobody need be told again.
bool tell_of_write(const std::string& path, bool nodes_share_it);

// Once; nothing where it was not started so, or is no rank. Where it cannot take part it ends: alone it would write what others write.
void take_part();

}  // namespace holdfast::frontend::posix
