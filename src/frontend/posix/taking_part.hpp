// A process that `holdfast run --replicas` has started becomes one of the replicas of its rank.
#pragma once
#include <string>

namespace holdfast::frontend::posix {

// Whether MPI_Comm_spawn has started it: the launcher did, with the environment and a number of a rank of the command. It is none.
bool is_spawned();

// For a launcher that a replica has started, or has become: the job ends, and this process. Another one is left alone, as is who only asks for a version.
void refuse_to_start_ranks(char* const* words);

// A rank of a launcher that is none of those, which a script has started: likewise. What it was started by is not seen, but that it is a rank is. For programs
// linked with MPI that MPI has not spawned.
void refuse_to_be_another_rank();
// In a child of a replica, as it is loaded: for what follows.
void remember_of_whom();
// False: there is no replica whose child this process could be. Then nothing is allocated.
bool may_be_of_a_replica();
// A replica, or a child of one, is about to start what comes without this library. A launcher is refused, as above; of another program that may write the job is told once.
// `why` it has none: for the line.
void tell_of_unseen(const char* path, char* const* words, const char* why);

// Of a child of a replica: the teams have nodes of their own.
bool is_of_teams_apart();
// A child of a replica is about to write a file: once in each team, where they share it. True: nobody need be told again.
bool tell_of_write(const std::string& path, bool nodes_share_it);

// Once; nothing where it was not started so, or is no rank. Where it cannot take part it ends: alone it would write what others write.
void take_part();

}  // namespace holdfast::frontend::posix
