#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record records[] = {
    {.key = "gather_output", .kind = Path{&OutputSettings::gather_output}},
};

}  // namespace

constinit const Area output_area{"Standard output", records};

}  // namespace holdfast
