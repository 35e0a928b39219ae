// The hub's loop: sockets, processes and the clock around Membership. It runs in a process of its own beside `holdfast run`.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>

namespace holdfast::redundant {

// Text of a rank's stream (0: output, 1: errors), once and in its order; empty: nothing more comes of any.
using Deliver = std::function<void(uint32_t rank, uint64_t stream, std::string_view text)>;

// Serves until the job is over or the other end of `control` has gone. The process ends after that. `out` and `err` are where the ranks' output goes,
// unless `deliver` is given: then only what the hub says itself goes to `err`. Takes the descriptors over.
void serve_hub(int control, int out, int err, Deliver deliver = {});

}  // namespace holdfast::redundant
