#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record records[] = {
    {.key = "targets",
     .kind = Directories{&PlaceSettings::targets},
     .hint = Hint::ours,
     .value = "DIR,...",
     .help = "Directories to keep files in, separated by commas",
     .more = "They must be empty, or members of one target set; NODE:DIR is a directory that the agent of another node serves. Without targets a "
             "file is kept in its own directory, over which the file system must stripe."},
    {.key = "local",
     .kind = Directories{&PlaceSettings::local},
     .value = "DIR",
     .help = "The directory that each node gives, such as '/tmp/hf-{node}' (or NODE:DIR,...); each file lies on some of them",
     .more = "{node} is the node's name; together the directories are a pool. It stands in the place of targets."},
    {.key = "domains",
     .kind = Path{&PlaceSettings::domains},
     .value = "FILE",
     .help = "Lines NODE RACK [POWER]: the parts of a file go to different racks of --local",
     .more = "They go to different power supplies too, as far as there are so many."},
};

}  // namespace

constinit const Area places_area{"Where new files are kept", records};

}  // namespace holdfast
