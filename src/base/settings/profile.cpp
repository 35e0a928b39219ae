#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record records[] = {
    {.key = "profile", .kind = Flag{&ProfileSettings::profile}},
    {.key = "profile_exclude", .kind = Globs{&ProfileSettings::profile_exclude}},
    {.key = "profile_mpi", .kind = Flag{&ProfileSettings::profile_mpi}},
    {.key = "trace", .kind = Flag{&ProfileSettings::trace}},
    {.key = "log_directory", .kind = Path{&ProfileSettings::log_directory}, .hint = Hint::ours, .option = "--log-dir"},
};

}  // namespace

constinit const Area profile_area{"Profile and logs of a job", records};

}  // namespace holdfast
