#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record records[] = {
    {.key = "path",
     .kind = Globs{&PolicySettings::path_globs},
     .value = "GLOB",
     .help = "Only files that match this glob (repeatable); without '/' it matches names",
     .more = "Files that are created by plain calls (open, fopen) are protected only where a glob names them. A glob with '/' is held against the "
             "absolute path; '*' matches '/' too."},
    {.key = "mounts",
     .kind = Word{&PolicySettings::mounts},
     .values = "any shared local",
     .value = "WHICH",
     .help = "Where plain files that a --path names must lie: shared: on file systems that nodes share; local: on the node's own; any: on either"},
    {.key = "shared_mounts",
     .kind = Directories{&PolicySettings::shared_mounts},
     .value = "DIR,...",
     .help = "Directories that nodes share, whatever the kind of their file system"},
    {.key = "local_mounts",
     .kind = Directories{&PolicySettings::local_mounts},
     .value = "DIR,...",
     .help = "Directories of each node's own, whatever the kind of their file system"},
};

}  // namespace

constinit const Area policy_area{"Which files are meant", records};

}  // namespace holdfast
