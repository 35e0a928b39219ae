#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record policy_records[] = {
    {.key = "path",
     .kind = Globs{&PolicySettings::path_globs},
     .value = "GLOB",
     .help = "Only files that match this glob (repeatable); without '/' it matches names",
     .more = "Files that plain calls (open, fopen) create are protected only if a glob names them. A glob with '/' is compared with "
             "the absolute path; '*' matches '/' too."},
    {.key = "mounts",
     .kind = Word{&PolicySettings::mounts},
     .values = "any shared local",
     .value = "WHICH",
     .help = "Apply --path to plain files on shared file systems (shared), node-local ones (local), or any"},
    {.key = "shared_mounts",
     .kind = Directories{&PolicySettings::shared_mounts},
     .value = "DIR,...",
     .help = "Directories that count as shared by the nodes, whatever their file system"},
    {.key = "local_mounts",
     .kind = Directories{&PolicySettings::local_mounts},
     .value = "DIR,...",
     .help = "Directories that count as node-local, whatever their file system"},
};

}  // namespace

constinit const Area policy_area{"Which files are meant", policy_records};

}  // namespace holdfast
