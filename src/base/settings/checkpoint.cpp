#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr Record records[] = {
    {.key = "checkpoint", .kind = Patterns{&CheckpointSettings::checkpoint}},
};

}  // namespace

constinit const Area checkpoint_area{"Checkpoints", records};

}  // namespace holdfast
