#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record profile_records[] = {
    {.key = "profile",
     .kind = Flag{&ProfileSettings::profile},
     .help = "Count what the program does with its files; the log is named at the end",
     .more = "Files are counted whether they are protected or not. 'holdfast report' shows the log."},
    {.key = "profile_exclude",
     .kind = Globs{&ProfileSettings::profile_exclude},
     .value = "GLOB",
     .help = "Files that match this glob are not counted (repeatable); '!GLOB' counts them after all",
     .more = "It applies to plain calls and streams; the last glob that matches decides. Files of the system are not counted."},
    {.key = "profile_mpi",
     .kind = Flag{&ProfileSettings::profile_mpi},
     .help = "The profile also counts MPI calls that are not about files, with their time",
     .more = "A library with all calls of MPI is preloaded for it."},
    {.key = "trace", .kind = Flag{&ProfileSettings::trace}, .help = "The profile also keeps single operations (the last 32768 of each process)"},
    {.key = "log_directory",
     .kind = Path{&ProfileSettings::log_directory},
     .hint = Hint::ours,
     .option = "--log-dir",
     .value = "DIR",
     .help = "Directory for the job's log"},
};

}  // namespace

constinit const Area profile_area{"Profile and logs of a job", profile_records};

}  // namespace holdfast
