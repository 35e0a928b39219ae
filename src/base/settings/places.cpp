#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record places_records[] = {
    {.key = "targets",
     .kind = Directories{&PlaceSettings::targets},
     .hint = Hint::ours,
     .value = "DIR,...",
     .help = "Directories to keep files in, separated by commas",
     .more = "They must be empty, or members of one target set. NODE:DIR is a directory that the agent of another node serves. "
             "Without targets a file is kept in its own directory, and the file system must stripe there."},
    {.key = "local",
     .kind = Directories{&PlaceSettings::local},
     .value = "DIR",
     .help = "Directory that each node gives, such as '/tmp/hf-{node}' (or NODE:DIR,...); each file lies on some of the nodes",
     .more = "{node} is the node's name. Together the directories are a pool, which replaces targets. 'n[1-64]:/DIR' is DIR of each of these nodes."},
    {.key = "domains",
     .kind = Path{&PlaceSettings::domains},
     .value = "FILE",
     .help = "File of lines NODE RACK [POWER]: the parts of a file go to different racks of --local",
     .more = "They go to different power supplies too, if there are enough."},
};

}  // namespace

constinit const Area places_area{"Where new files are kept", places_records};

}  // namespace holdfast
