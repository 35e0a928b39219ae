#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record replicas_records[] = {
    {.key = "read_protocol",
     .kind = Word{&ReplicaSettings::read_protocol},
     .hint = Hint::ours,
     .values = "auto none simple extended-simple read-and-distribute chained chunked-and-chained distributed-chunked",
     .value = "NAME",
     .help = "With --replicas: how they share reads of files that may change",
     .more = "A protocol that is named also applies to files that are only read. The hint applies to plain files only."},
    {.key = "write_protocol",
     .kind = Word{&ReplicaSettings::write_protocol},
     .hint = Hint::ours,
     .values = "auto simple distributed distributed-separate",
     .value = "NAME",
     .help = "With --replicas: how they share writes",
     .more = "distributed-separate: each replica writes its own part beside the file. The parts are joined before the program reads "
             "it, at a sync and at the close. If the whole job was killed, 'holdfast merge' joins them."},
    {.key = "clock",
     .kind = Word{&ReplicaSettings::clock},
     .values = "decided strict own",
     .value = "HOW",
     .help = "With --replicas: whose clocks they see",
     .more = "decided: the first replica's. strict: likewise, and all have the answer before its next message or call on a file. own: each its own. "
             "It is one for the whole job, so there is no hint."},
};

}  // namespace

constinit const Area replicas_area{"Replicas", replicas_records};

}  // namespace holdfast
