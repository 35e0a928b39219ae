#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record records[] = {
    {.key = "path", .kind = Globs{&PolicySettings::path_globs}},
    {.key = "mounts", .kind = Word{&PolicySettings::mounts}, .values = "any shared local"},
    {.key = "shared_mounts", .kind = Directories{&PolicySettings::shared_mounts}},
    {.key = "local_mounts", .kind = Directories{&PolicySettings::local_mounts}},
};

}  // namespace

constinit const Area policy_area{"Which files are meant", records};

}  // namespace holdfast
