#include "base/settings/record.hpp"

namespace holdfast {

namespace {

constexpr uint64_t day_ms = 24ull * 3600 * 1000;

constexpr Record records[] = {
    {.key = "deadline", .kind = Duration{&WaitingSettings::deadline_ms, 1, day_ms, "10, 500ms or 2min"}, .hint = Hint::ours},
    {.key = "patience", .kind = Number<int>{&WaitingSettings::patience, "a number of deadlines", 1, 1000}, .hint = Hint::ours},
    {.key = "locks", .kind = Word{&WaitingSettings::locks}, .values = "auto kernel names"},
    {.key = "lock_patience", .kind = Duration{&WaitingSettings::lock_patience_ms, 1, day_ms, "30s or 10min"}, .hint = Hint::ours},
};

}  // namespace

constinit const Area waiting_area{"Waiting for targets and locks", records};

}  // namespace holdfast
