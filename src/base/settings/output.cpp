#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record output_records[] = {
    {.key = "gather_output",
     .kind = Path{&OutputSettings::gather_output},
     .value = "FILE",
     .help = "Write standard output and error of all ranks to this file, line by line with time and rank",
     .more = "A line is: [2026-03-01T09:30:00.125 rank 3 out] text."},
};

}  // namespace

constinit const Area output_area{"Standard output", output_records};

}  // namespace holdfast
