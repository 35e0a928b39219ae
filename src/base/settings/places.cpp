#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record records[] = {
    {.key = "targets", .kind = Directories{&PlaceSettings::targets}, .hint = Hint::ours},
    {.key = "local", .kind = Directories{&PlaceSettings::local}},
    {.key = "domains", .kind = Path{&PlaceSettings::domains}},
};

}  // namespace

constinit const Area places_area{"Where new files are kept", records};

}  // namespace holdfast
