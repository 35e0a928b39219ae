#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr uint64_t day_ms = 24ull * 3600 * 1000;

constexpr Record waiting_records[] = {
    {.key = "deadline",
     .kind = Duration{&WaitingSettings::deadline_ms, 1, day_ms, "10, 500ms or 2min"},
     .hint = Hint::ours,
     .value = "TIME",
     .help = "How long a target may take for one call before it is set aside"},
    {.key = "patience",
     .kind = Number<int>{&WaitingSettings::patience, "a number of deadlines", 1, 1000},
     .hint = Hint::ours,
     .value = "N",
     .help = "How many deadlines to wait while more targets are late than may be lost",
     .more = "So many late targets at once are taken for load, not loss. Calls are waited for as long as some of them come back."},
    {.key = "locks",
     .kind = Word{&WaitingSettings::locks},
     .values = "auto kernel names",
     .value = "WAY",
     .help = "How nodes exclude each other: kernel (its locks), names, or auto (by the mount)",
     .more = "auto: by the kernel's locks if the file system carries them to all nodes, else by names too. All programs that open a "
             "file must use the same value."},
    {.key = "lock_patience",
     .kind = Duration{&WaitingSettings::lock_patience_ms, 1, day_ms, "30s or 10min"},
     .hint = Hint::ours,
     .value = "TIME",
     .help = "How long to wait for a file's lock"},
};

}  // namespace

constinit const Area waiting_area{"Waiting for targets and locks", waiting_records};

}  // namespace holdfast
