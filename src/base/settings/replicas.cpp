#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record records[] = {
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
};

}  // namespace

constinit const Area replicas_area{"Replicas", records};

}  // namespace holdfast
