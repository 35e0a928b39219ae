#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record shared_pointer_records[] = {
    {.key = "shared_pointer",
     .kind = Word{&SharedPointerSettings::shared_pointer},
     .hint = Hint::ours,
     .values = "automatic window process individual single native",
     .value = "WHO",
     .help = "Who keeps a file's shared pointer: window, process, individual, single or native",
     .more = "It applies to the calls with _shared and _ordered in their names, on files that are protected or not. window: an MPI "
             "window. process: a small server process. individual and single: records go to a log of each process and are merged. "
             "native: the MPI, for unprotected files only. automatic begins with window."},
    {.key = "merge",
     .kind = Either{&SharedPointerSettings::merge_later, "close", "later"},
     .hint = Hint::ours,
     .value = "WHEN",
     .help = "When logs of records are merged into their file: at its close, or later, by 'holdfast merge'"},
    {.key = "max_metadata_records",
     .kind = Number<uint64_t>{&SharedPointerSettings::max_metadata_records, "a number of records", 1, 1ull << 32},
     .hint = Hint::ours,
     .value = "N",
     .help = "Records of a log whose descriptions a process keeps in memory",
     .more = "The rest is read from the log again."},
    {.key = "ordered",
     .kind = Either{&SharedPointerSettings::ordered_by_scan, "root", "scan"},
     .hint = Hint::ours,
     .value = "HOW",
     .help = "How ranks learn their places in an ordered call: root (one rank asks for all) or scan"},
};

}  // namespace

constinit const Area shared_pointer_area{"Shared file pointers", shared_pointer_records};

}  // namespace holdfast
